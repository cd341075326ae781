/*
 * What the files of the pipeline reader share; private to lib/conf.
 */
#ifndef TRP_CONF_PIPELINE_LOAD_H
#define TRP_CONF_PIPELINE_LOAD_H

#include "conf/pipeline.h"
#include "conf/yaml.h"

/* pipeline_stage.c: the keys of a stage. A test holds that each has a place. */
extern const struct trp_yaml_key trp_pipeline_stage_keys[];
extern const uint32_t trp_pipeline_nstage_keys;

/* pipeline_stage.c: one item of `stages:`. */
void trp_pipeline_stage_read(trp_yaml *y, const struct trp_yaml_node *node,
                             struct trp_pipeline_stage *s);

/* pipeline_include.c: brings in the files that `include` names. To be called first; `file`
 * is the pipeline. */
void trp_pipeline_include(trp_yaml *y, const char *file,
                          const struct trp_pipeline_inputs *in);

/* pipeline_values.c: puts params in place of `${NAME}`, and what one task has in the form
 * of core/base/template.h. To be called before anything is read. */
void trp_pipeline_values(trp_yaml *y, const struct trp_pipeline_inputs *in,
                         trp_pipeline *p);

/* pipeline_foreign.c: tells of keys of a stage, or of the file, that other tools have,
 * and of values that have the shape they have there. To be called first: of what is
 * wrong in one place the first is told. */
void trp_pipeline_foreign(trp_yaml *y, const struct trp_yaml_node *node, bool stage);

/* pipeline_stage.c: `shell:` of a stage, or of the file. */
void trp_pipeline_shell_read(trp_yaml *y, const struct trp_yaml_node *value,
                             struct trp_shell *ret);

/* pipeline_check.c: what concerns several stages: names, `after`, cycles, `each`. Fills
 * in the parents' indices and p->order. */
void trp_pipeline_check(trp_yaml *y, trp_pipeline *p);
/* pipeline_names.c: warns of variables of ours in `run` that no run sets. */
void trp_pipeline_check_names(trp_yaml *y, trp_pipeline *p);
/* Keeps a warning, the first TRP_PIPELINE_WARNINGS of them. */
void trp_pipeline_warn(trp_yaml *y, trp_pipeline *p, struct trp_mark at,
                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The ${NAME} that stands for what is in a variable of ours, without its braces; "": there
 * is none. Returns buf. */
char *trp_pipeline_value_of(const char *variable, char *buf, size_t size);
/* Takes those out that `when` leaves out, in a pipeline without errors. */
void trp_pipeline_leave_out(trp_pipeline *p);

/* pipeline.c: `options:` of any file; each is checked against the table. Keys that
 * begin with `skip` (may be NULL) are left to the caller: only their form is checked.
 */
struct trp_pair *trp_options_read(trp_yaml *y, const struct trp_yaml_node *node,
                                  const char *skip, uint32_t *ret_count);
/* Puts pairs into `o`; `file` is for places. */
int trp_options_set_pairs(trp_options *o, const struct trp_pair *v, uint32_t n,
                          enum trp_origin origin, const char *file, trp_error *err);

#endif

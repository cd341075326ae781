/*
 * The table behind engine_fields.h: which members there are, where, and of which type.
 * Private to the engine_fields_*.c.
 */
#ifndef TRP_EVENTS_ENGINE_FIELDS_TABLE_H
#define TRP_EVENTS_ENGINE_FIELDS_TABLE_H

#include "conf/options.h"
#include "events/engine_fields.h"

enum trp_field_type {
    TRP_FIELD_UNSIGNED,
    TRP_FIELD_SIGNED,
    TRP_FIELD_CHOICE,  /* 0 … below `most` */
    TRP_FIELD_ATTEMPT, /* trp_attempt_id */
    TRP_FIELD_NUMBER,  /* double, by its bits */
    TRP_FIELD_TEXT,    /* const char *, never NULL */
    TRP_FIELD_MAYBE,   /* const char * or NULL */
    TRP_FIELD_CHARS,   /* char[size], NUL-terminated */
    TRP_FIELD_POINTER, /* to one struct of `of` */
    TRP_FIELD_ARRAY, /* pointer to as many structs of `of` as the member at `count` says
                      */
    TRP_FIELD_INLINE, /* the same, an array in place of at most `most` */
    TRP_FIELD_TEXTS,  /* const char *const *, `count` */
    TRP_FIELD_PREFER, /* struct trp_preferences of as many tasks as `count` says */
    TRP_FIELD_DONE,   /* const uint8_t * of `count` bytes, or NULL */
};

struct trp_fields;
struct trp_field {
    const char *name;
    enum trp_field_type type;
    uint32_t offset, size, count, most;
    const struct trp_fields *of;
};

struct trp_fields {
    const char *name;
    size_t size; /* of the struct that an array has */
    const struct trp_field *fields;
    uint32_t n;
};

extern const struct trp_fields trp_fields_of_event[];  /* by kind */
extern const struct trp_fields trp_fields_of_action[]; /* by kind */
extern const uint32_t trp_fields_events, trp_fields_actions;
extern const struct trp_fields trp_fields_of_config, trp_fields_of_defaults,
    trp_fields_of_builder;
/* The member that an option has, as a field. */
struct trp_field trp_field_of_option(const struct trp_option *t);

/* What counts are: things of at least a byte each. 0 after an error. */
uint32_t trp_fields_get_count(struct trp_view *v);
/* Of an array that may be NULL: then TRP_NONE. */
uint32_t trp_fields_get_array(struct trp_view *v);

/* A member of 1, 2, 4 or 8 bytes. */
static inline uint64_t trp_field_load(const void *p, uint32_t size)
{
    uint8_t x1;
    uint16_t x2;
    uint32_t x4;
    uint64_t x8;
    switch (size) {
    case 1:
        memcpy(&x1, p, 1);
        return x1;
    case 2:
        memcpy(&x2, p, 2);
        return x2;
    case 4:
        memcpy(&x4, p, 4);
        return x4;
    default:
        memcpy(&x8, p, 8);
        return x8;
    }
}

static inline uint64_t trp_zigzag(int64_t x)
{
    return (uint64_t)x << 1 ^ (uint64_t)(x >> 63);
}

static inline int64_t trp_unzigzag(uint64_t x)
{
    return (int64_t)(x >> 1) ^ -(int64_t)(x & 1);
}

#endif

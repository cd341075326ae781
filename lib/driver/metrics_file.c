/*
 * The file is for another user's exporter, so everybody may read it (0644), whatever the
 * umask. In a folder that others can write to nobody's link is followed: the file is made
 * anew, and renamed.
 */
#include "driver/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/whole_file.h"

struct trp_metrics_file {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct trp_buf next; /* to be written; size 0: nothing */
    bool closing;
    int failed; /* errno of the last one that could not be written */
    char path[PATH_MAX], fresh[PATH_MAX + 32];
};

/* 0, or an errno. */
static int write_whole(const trp_metrics_file *f, const struct trp_buf *text)
{
    unlink(f->fresh); /* of one that was killed */
    int fd = open(f->fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno;
    int code = fchmod(fd, 0644) < 0 || trp_file_write(fd, text->data, text->size) < 0
                   ? errno
                   : 0;
    if (close(fd) < 0 && !code)
        code = errno;
    if (!code && rename(f->fresh, f->path) < 0)
        code = errno;
    if (code)
        unlink(f->fresh);
    return code;
}

static void *write_all(void *file)
{
    trp_metrics_file *f = file;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->next.size && !f->closing)
            pthread_cond_wait(&f->news, &f->lock);
        if (!f->next.size)
            break;
        struct trp_buf text = f->next;
        f->next = (struct trp_buf){0};
        pthread_mutex_unlock(&f->lock);
        int code = write_whole(f, &text);
        trp_buf_free(&text);
        pthread_mutex_lock(&f->lock);
        f->failed = code;
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

trp_metrics_file *trp_metrics_file_new(const char *path, const char *run,
                                       trp_error *err)
{
    struct stat st;
    trp_metrics_file *f = calloc(1, sizeof *f);
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    int n = !f       ? 0
            : folder ? snprintf(f->path, sizeof f->path, "%s/troupe-%s.prom", path, run)
                     : snprintf(f->path, sizeof f->path, "%s", path);
    if (!f || n >= (int)sizeof f->path) {
        trp_error_set(err, TRP_ELIMIT, "metrics.file: the path is too long");
        free(f);
        return NULL;
    }
    snprintf(f->fresh, sizeof f->fresh, "%s.%d", f->path, (int)getpid());
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->news, NULL);
    int code = pthread_create(&f->thread, NULL, write_all, f);
    if (code == 0)
        return f;
    trp_error_set(err, TRP_ESYSTEM, "metrics.file: no thread: %s", strerror(code));
    pthread_cond_destroy(&f->news);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return NULL;
}

void trp_metrics_file_give(trp_metrics_file *f, struct trp_buf *take_text)
{
    pthread_mutex_lock(&f->lock);
    trp_buf_free(&f->next);
    f->next = *take_text;
    pthread_cond_signal(&f->news);
    pthread_mutex_unlock(&f->lock);
}

bool trp_metrics_file_failed(trp_metrics_file *f, char *text, size_t size)
{
    pthread_mutex_lock(&f->lock);
    int code = f->failed;
    pthread_mutex_unlock(&f->lock);
    if (code)
        snprintf(text, size, "metrics.file: %.600s cannot be written: %s", f->path,
                 strerror(code));
    return code != 0;
}

void trp_metrics_file_close(trp_metrics_file *take_f)
{
    trp_metrics_file *f = take_f;
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_cond_signal(&f->news);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    pthread_cond_destroy(&f->news);
    pthread_mutex_destroy(&f->lock);
    trp_buf_free(&f->next);
    free(f);
}

/* Counts what is allocated by everything that is linked statically. */
#include "memory.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

static int64_t held;

int64_t memory_held(void)
{
    return held;
}

static void *count(void *p)
{
    held += p ? (int64_t)malloc_usable_size(p) : 0;
    return p;
}

void *__wrap_malloc(size_t n)
{
    return count(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
    size_t before = p ? malloc_usable_size(p) : 0;
    void *q = __real_realloc(p, n);
    if (q)
        held -= (int64_t)before;
    return count(q);
}

void __wrap_free(void *p)
{
    held -= p ? (int64_t)malloc_usable_size(p) : 0;
    __real_free(p);
}

char *__wrap_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = __wrap_malloc(n);
    return p ? memcpy(p, s, n) : NULL;
}

char *__wrap_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = __wrap_malloc(len + 1);
    if (!p)
        return NULL;
    memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

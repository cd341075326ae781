/*
 * The frame has places, `{{NAME}}`, which are filled in one pass over it: what is put in
 * is not looked at again.
 */
#include "events/page/page.h"

#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <nettle/version.h>
#include <string.h>

#include "events/page/embedded.h"

static void put_text(struct trp_buf *b, const char *s)
{
    trp_put_raw(b, s, strlen(s));
}

static void put_html(struct trp_buf *b, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<':
            put_text(b, "&lt;");
            break;
        case '>':
            put_text(b, "&gt;");
            break;
        case '&':
            put_text(b, "&amp;");
            break;
        case '"':
            put_text(b, "&quot;");
            break;
        default:
            trp_put_raw(b, s, 1);
        }
}

/* JSON text may stand in a script element once it has no `<`: neither its end nor a
 * comment begins in it. U+2028 and U+2029 end lines of older scripts. */
static void put_json(struct trp_buf *b, const char *json, size_t size)
{
    size_t done = 0;
    for (size_t i = 0; i < size; i++) {
        const char *escape = NULL;
        size_t length = 1;
        if (json[i] == '<')
            escape = "\\u003c";
        else if (json[i] == '>')
            escape = "\\u003e";
        else if (json[i] == '&')
            escape = "\\u0026";
        else if (i + 2 < size && memcmp(json + i, "\xe2\x80", 2) == 0 &&
                 (json[i + 2] & ~1) == '\xa8') {
            escape = json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
            length = 3;
        }
        if (!escape)
            continue;
        trp_put_raw(b, json + done, i - done);
        put_text(b, escape);
        i += length - 1;
        done = i + 1;
    }
    trp_put_raw(b, json + done, size - done);
}

static void put_member(struct trp_buf *b, const char *name, const char *json,
                       size_t size)
{
    put_text(b, name);
    put_json(b, json, size);
}

static void put_data(struct trp_buf *b, const struct trp_page_parts *p)
{
    put_member(b, "{\"head\":", p->head, p->head_size);
    put_member(b, ",\"report\":", p->report, p->report_size);
    put_member(b, ",\"page\":", p->page, p->page_size);
    put_member(b, ",\"alternatives\":", p->alternatives, p->alternatives_size);
    put_text(b, "}");
}

/* 'sha256-…', as a policy names what it allows. */
static void put_hash(struct trp_buf *b, const unsigned char *data, size_t size)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    char text[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = "";
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, size, data);
#if NETTLE_VERSION_MAJOR >= 4
    sha256_digest(&hash, digest);
#else
    sha256_digest(&hash, sizeof digest, digest);
#endif
    base64_encode_raw(text, sizeof digest, digest);
    put_text(b, "'sha256-");
    put_text(b, text);
    put_text(b, "'");
}

static void put_place(struct trp_buf *b, const char *name, size_t size,
                      const struct trp_page_parts *p)
{
    if (size == 5 && memcmp(name, "TITLE", size) == 0)
        put_html(b, p->title);
    else if (size == 10 && memcmp(name, "STYLE_HASH", size) == 0)
        put_hash(b, trp_page_css, trp_page_css_size);
    else if (size == 11 && memcmp(name, "SCRIPT_HASH", size) == 0)
        put_hash(b, trp_page_js, trp_page_js_size);
    else if (size == 5 && memcmp(name, "STYLE", size) == 0)
        trp_put_raw(b, trp_page_css, trp_page_css_size);
    else if (size == 6 && memcmp(name, "SCRIPT", size) == 0)
        trp_put_raw(b, trp_page_js, trp_page_js_size);
    else if (size == 4 && memcmp(name, "DATA", size) == 0)
        put_data(b, p);
}

void trp_page_put(struct trp_buf *b, const struct trp_page_parts *p)
{
    const char *at = (const char *)trp_page_html, *end = at + trp_page_html_size;
    while (at < end) {
        const char *open = memmem(at, (size_t)(end - at), "{{", 2);
        const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
        if (!close)
            break;
        trp_put_raw(b, at, (size_t)(open - at));
        put_place(b, open + 2, (size_t)(close - open - 2), p);
        at = close + 2;
    }
    trp_put_raw(b, at, (size_t)(end - at));
}

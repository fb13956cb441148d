/* SPDX-License-Identifier: MIT */
/*
 * nvq: writing JSON to standard output.  A key is NULL within an array and for
 * the outermost value.
 */
#ifndef NVQ_JSON_H
#define NVQ_JSON_H

#include <stdint.h>

void json_object(const char *key);
void json_array(const char *key);
/* Ends the innermost object or array. */
void json_end(void);
/* An empty string is null: a thing not known. */
void json_string(const char *key, const char *value);
void json_number(const char *key, int64_t value);

#endif /* NVQ_JSON_H */

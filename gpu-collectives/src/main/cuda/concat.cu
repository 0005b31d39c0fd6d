/*
 * Concatenates tables with the same columns. Values and string bytes are copied, validity bits are
 * shifted, and string offsets are adjusted. The result is zero before. Several launches, one after
 * the other, may each add some tables.
 */
#include "partition.h"

/* One column of one table. */
struct concat_piece {
  uint64_t validity; /* bits; 0 if not nullable. */
  uint64_t offsets;  /* of strings, starting at 0; else 0. */
  uint64_t from;     /* values, or the bytes of strings. */
  uint64_t to;
  int64_t bytes;
  int64_t before; /* bytes of strings in the tables before. */
  int64_t chunk;  /* the first chunk of this piece, among those of all pieces. */
  int64_t unused;
};

/* A section of the result that is computed, not copied. */
struct concat_section {
  int64_t column;
  uint64_t at;
};

struct concat_arguments {
  uint64_t run;      /* the result. */
  uint64_t firsts;   /* 8 bytes for each table: first row in the result; then the end. */
  uint64_t pieces;   /* by table, then by column. */
  uint64_t sections; /* all validity, or all offsets. */
  int64_t tables;    /* all with rows. */
  int64_t columns;
  int64_t count; /* of sections. */
  int64_t first_chunk;
  int64_t end_chunk;
};

/* The table that contains a row of the result; the last table for the end of all rows. */
INLINE int64_t concat_table(const int64_t *firsts, int64_t tables, int64_t row) {
  int64_t from = 0;
  int64_t to = tables - 1;
  while (from < to) {
    int64_t middle = (from + to + 1) >> 1;
    if (firsts[middle] <= row) {
      from = middle;
    } else {
      to = middle - 1;
    }
  }
  return from;
}

/* Returns 1 to 32 bits, lowest first. Reads only bytes that contain some of them. */
INLINE uint32_t concat_bits(uint64_t validity, int64_t first, int count) {
  uint32_t all = count == 32 ? 0xffffffffu : (1u << count) - 1;
  if (validity == 0) {
    return all;
  }
  const uint8_t *bytes = (const uint8_t *)validity + (first >> 3);
  int shift = (int)(first & 7);
  uint64_t found = 0;
  for (int i = 0; i * 8 < shift + count; i++) {
    found |= (uint64_t)bytes[i] << (8 * i);
  }
  return (uint32_t)(found >> shift) & all;
}

/* A thread for each word of each column; other launches may share the first and the last word. */
KERNEL(weft_concat_validity, concat_arguments, 256) {
  const int64_t *firsts = (const int64_t *)a.firsts;
  int64_t first_word = firsts[0] >> 5;
  int64_t end = firsts[a.tables];
  int64_t words = ((end - 1) >> 5) - first_word + 1;
  EACH(item, a.count * words) {
    const struct concat_section *section = (const struct concat_section *)a.sections + item / words;
    const struct concat_piece *pieces = (const struct concat_piece *)a.pieces + section->column;
    int64_t word = first_word + item % words;
    int64_t row = word * 32 < firsts[0] ? firsts[0] : word * 32;
    int64_t last = word * 32 + 32 < end ? word * 32 + 32 : end;
    uint32_t bits = 0;
    for (int64_t table = concat_table(firsts, a.tables, row); row < last; table++) {
      int64_t to = firsts[table + 1] < last ? firsts[table + 1] : last;
      uint64_t validity = pieces[table * a.columns].validity;
      bits |= concat_bits(validity, row - firsts[table], (int)(to - row)) << (row & 31);
      row = to;
    }
    ((uint32_t *)section->at)[word] |= bits;
  }
}

/* A thread for each row of each column, and one for the end of the last row. */
KERNEL(weft_concat_offsets, concat_arguments, 256) {
  const int64_t *firsts = (const int64_t *)a.firsts;
  int64_t rows = firsts[a.tables] - firsts[0] + 1;
  EACH(item, a.count * rows) {
    const struct concat_section *section = (const struct concat_section *)a.sections + item / rows;
    int64_t row = firsts[0] + item % rows;
    int64_t table = concat_table(firsts, a.tables, row);
    const struct concat_piece *piece =
        (const struct concat_piece *)a.pieces + table * a.columns + section->column;
    ((int32_t *)section->at)[row] =
        ((const int32_t *)piece->offsets)[row - firsts[table]] + (int32_t)piece->before;
  }
}

/* Bytes that a warp copies before it searches its place again. */
#define CONCAT_CHUNK 4096

/* The piece that contains a chunk: the last one that begins there or before. */
INLINE const struct concat_piece *concat_piece_of(const struct concat_piece *pieces, int64_t count,
                                                  int64_t chunk) {
  int64_t from = 0;
  int64_t to = count - 1;
  while (from < to) {
    int64_t middle = (from + to + 1) >> 1;
    if (pieces[middle].chunk <= chunk) {
      from = middle;
    } else {
      to = middle - 1;
    }
  }
  return pieces + from;
}

/* Copies in the largest unit that divides both addresses, then the remaining bytes. */
KERNEL(weft_concat_bytes, concat_arguments, 256) {
  const struct concat_piece *pieces = (const struct concat_piece *)a.pieces;
  int64_t warps = BLOCKS * (THREADS / 32);
  int64_t first = a.first_chunk + BLOCK * (THREADS / 32) + WARP;
  for (int64_t chunk = first; chunk < a.end_chunk; chunk += warps) {
    const struct concat_piece *piece = concat_piece_of(pieces, a.tables * a.columns, chunk);
    int64_t start = (chunk - piece->chunk) * CONCAT_CHUNK;
    int64_t end = start + CONCAT_CHUNK < piece->bytes ? start + CONCAT_CHUNK : piece->bytes;
    int64_t both = (int64_t)(piece->from | piece->to | 16);
    int64_t unit = both & -both;
    char *to = (char *)piece->to;
    for (int64_t i = start / unit + LANE; i < end / unit; i += 32) {
      copy_value(to, i, piece->from, i, unit);
    }
    for (int64_t i = end - end % unit + LANE; i < end; i += 32) {
      copy_value(to, i, piece->from, i, 1);
    }
  }
}

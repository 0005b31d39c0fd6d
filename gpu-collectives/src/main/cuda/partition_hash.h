/* Spark's Murmur3 of rows. The hash of a row seeds the hash of its next column; nulls are skipped.
 */

struct hash_arguments {
  uint64_t hashes; /* 4 bytes for each row. */
  int64_t rows;
  int32_t columns;
  int32_t seed;       /* used in the first launch. */
  int32_t is_first;   /* else the hashes contain the columns before. */
  int32_t partitions; /* in the last launch, to turn hashes into partitions; else 0. */
  struct column column[MAX_COLUMNS];
};

INLINE uint32_t rotate(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

INLINE uint32_t mix(uint32_t hash, uint32_t word) {
  return rotate(hash ^ rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u, 13) * 5 + 0xe6546b64u;
}

INLINE uint32_t finish(uint32_t hash, uint32_t bytes) {
  hash ^= bytes;
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

INLINE uint32_t hash_int(uint32_t hash, uint32_t value) { return finish(mix(hash, value), 4); }

INLINE uint32_t hash_long(uint32_t hash, uint64_t value) {
  return finish(mix(mix(hash, (uint32_t)value), (uint32_t)(value >> 32)), 8);
}

/* All zeros are one value, and so are all NaNs. */
INLINE uint32_t hash_float(uint32_t hash, uint32_t bits) {
  uint32_t magnitude = bits & 0x7fffffffu;
  return hash_int(hash, magnitude == 0 ? 0 : magnitude > 0x7f800000u ? 0x7fc00000u : bits);
}

INLINE uint32_t hash_double(uint32_t hash, uint64_t bits) {
  uint64_t magnitude = bits & 0x7fffffffffffffffull;
  return hash_long(hash, magnitude == 0                       ? 0
                         : magnitude > 0x7ff0000000000000ull ? 0x7ff8000000000000ull
                                                             : bits);
}

/* Whole words first; then each remaining byte counts as a word, with its sign. */
INLINE uint32_t hash_bytes(uint32_t hash, const uint8_t *bytes, int32_t count) {
  int32_t at = 0;
  for (; at <= count - 4; at += 4) {
    hash = mix(hash, (uint32_t)bytes[at] | (uint32_t)bytes[at + 1] << 8 |
                         (uint32_t)bytes[at + 2] << 16 | (uint32_t)bytes[at + 3] << 24);
  }
  for (; at < count; at++) {
    hash = mix(hash, (uint32_t)(int8_t)bytes[at]);
  }
  return finish(hash, (uint32_t)count);
}

/* Byte i, counted from the highest, of the shortest two's complement, which has count bytes. */
INLINE uint32_t decimal_byte(uint64_t low, uint64_t high, int32_t count, int32_t i) {
  int32_t shift = (count - 1 - i) * 8;
  return (uint32_t)(shift < 64 ? low >> shift : high >> (shift - 64)) & 0xff;
}

INLINE uint32_t hash_decimal(uint32_t hash, uint64_t low, uint64_t high) {
  int32_t count = 16;
  uint32_t sign = high >> 63 ? 0xff : 0;
  while (count > 1 && decimal_byte(low, high, count, 0) == sign &&
         decimal_byte(low, high, count, 1) >> 7 == (sign & 1)) {
    count--;
  }
  int32_t at = 0;
  for (; at + 4 <= count; at += 4) {
    hash = mix(hash, decimal_byte(low, high, count, at) |
                         decimal_byte(low, high, count, at + 1) << 8 |
                         decimal_byte(low, high, count, at + 2) << 16 |
                         decimal_byte(low, high, count, at + 3) << 24);
  }
  for (; at < count; at++) {
    hash = mix(hash, (uint32_t)(int8_t)decimal_byte(low, high, count, at));
  }
  return finish(hash, (uint32_t)count);
}

/* Never reads beyond the strings, even if the offsets are wrong. */
INLINE uint32_t hash_string(uint32_t hash, const struct column *column, int64_t row) {
  const int32_t *offsets = (const int32_t *)column->offsets;
  int64_t from = offsets[row];
  int64_t to = offsets[row + 1];
  if (from < 0 || to < from || to > column->bytes) {
    return hash;
  }
  return hash_bytes(hash, (const uint8_t *)column->data + from, (int32_t)(to - from));
}

INLINE uint32_t hash_value(uint32_t hash, const struct column *column, int64_t row) {
  switch (column->kind) {
    case BOOLEAN: return hash_int(hash, ((const uint8_t *)column->data)[row] != 0);
    case BYTE: return hash_int(hash, (uint32_t)((const int8_t *)column->data)[row]);
    case SHORT: return hash_int(hash, (uint32_t)((const int16_t *)column->data)[row]);
    case INT:
    case DATE: return hash_int(hash, ((const uint32_t *)column->data)[row]);
    case FLOAT: return hash_float(hash, ((const uint32_t *)column->data)[row]);
    case DOUBLE: return hash_double(hash, ((const uint64_t *)column->data)[row]);
    case DECIMAL128: {
      const uint64_t *halves = (const uint64_t *)column->data + 2 * row;
      return hash_decimal(hash, halves[0], halves[1]);
    }
    case STRING:
    case BINARY: return hash_string(hash, column, row);
    default: return hash_long(hash, ((const uint64_t *)column->data)[row]);
  }
}

KERNEL(weft_hash, hash_arguments, 256) {
  int32_t *hashes = (int32_t *)a.hashes;
  EACH(row, a.rows) {
    uint32_t hash = (uint32_t)(a.is_first ? a.seed : hashes[row]);
    for (int c = 0; c < a.columns; c++) {
      if (is_valid(a.column[c].validity, row)) {
        hash = hash_value(hash, &a.column[c], row);
      }
    }
    int32_t left = a.partitions == 0 ? (int32_t)hash : (int32_t)hash % a.partitions;
    hashes[row] = a.partitions != 0 && left < 0 ? left + a.partitions : left;
  }
}

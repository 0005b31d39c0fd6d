package io.weft.spark.values;

import io.weft.spark.values.ValueType.RefusedException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * Numbers the schemas of a task's rows, of which nearly all have the same. Rows with a further
 * schema are refused when the table is full.
 *
 * <p>For one task thread.
 */
final class SchemaTable {
  /** Chunks mark their schemas in the bits of an int. */
  static final int SIZE = 32;

  private final Function<Object, ByteBuffer> format;
  private final List<Object> schemas = new ArrayList<>();

  /** Null for a schema that cannot be written. */
  private final List<byte[]> bytes = new ArrayList<>();

  private Object last;
  private int lastId;

  SchemaTable(Function<Object, ByteBuffer> format) {
    this.format = format;
  }

  /** The number of a schema that can be written. */
  int id(Object schema) throws RefusedException {
    if (schema != last || schema == null) {
      lastId = find(schema);
      last = schema;
    }
    if (lastId < 0 || bytes(lastId) == null) {
      throw RefusedException.unknown();
    }
    return lastId;
  }

  /** The bytes of a numbered schema. */
  byte[] bytes(int id) {
    return bytes.get(id);
  }

  private int find(Object schema) {
    if (schema == null) {
      return -1;
    }
    // Rows that Java's serialization has read have many equal schemas.
    for (int id = 0; id < schemas.size(); id++) {
      if (schemas.get(id).equals(schema)) {
        return id;
      }
    }
    if (schemas.size() == SIZE) {
      return -1;
    }
    schemas.add(schema);
    bytes.add(serialized(schema));
    return schemas.size() - 1;
  }

  private byte[] serialized(Object schema) {
    try {
      ByteBuffer buffer = format.apply(schema);
      byte[] copy = new byte[buffer.remaining()];
      buffer.get(copy);
      return copy;
    } catch (Exception e) {
      // It has a type that cannot be serialized. The record's own serialization tells that.
      return null;
    }
  }
}

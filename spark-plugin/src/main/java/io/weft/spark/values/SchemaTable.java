package io.weft.spark.values;

import io.weft.spark.values.ValueType.RefusedException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;

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
  private final List<Known> schemas = new ArrayList<>();
  private Object last;
  private int lastId;

  /**
   * A numbered schema.
   *
   * @param ownTypes whether it has types of a program: they may be equal without being the same
   * @param bytes null if it cannot be written
   */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  private record Known(StructType schema, boolean ownTypes, byte[] bytes) {
    @SuppressWarnings("ReferenceEquality") // Equal types of a program may differ.
    boolean is(StructType other) {
      return schema == other || (!ownTypes && schema.equals(other));
    }
  }

  SchemaTable(Function<Object, ByteBuffer> format) {
    this.format = format;
  }

  /** The number of a schema that can be written. */
  int id(StructType schema) throws RefusedException {
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
    return schemas.get(id).bytes();
  }

  private int find(StructType schema) {
    if (schema == null) {
      return -1;
    }
    // Rows that Java's serialization has read have many equal schemas.
    for (int id = 0; id < schemas.size(); id++) {
      if (schemas.get(id).is(schema)) {
        return id;
      }
    }
    if (schemas.size() == SIZE) {
      return -1;
    }
    boolean ownTypes = schema.existsRecursively(type -> type instanceof UserDefinedType<?>);
    schemas.add(new Known(schema, ownTypes, serialized(schema)));
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

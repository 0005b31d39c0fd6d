/**
 * Kryo serializers of tensors, and an output and an input for records with tensors. They copy the
 * bytes of tensors from memory to memory; Kryo handles the rest of a record.
 *
 * <p>Like Kryo, each object serves one thread at a time. An output refers to the tensors of one
 * record until it is placed. Deserialized tensors own their memory.
 */
package io.weft.spark.kryo;

/**
 * Tensors in Kryo's words: their serializers, and an output and an input between which the bytes of
 * tensors go from memory to memory while Kryo handles the rest of a record.
 *
 * <p>As with Kryo itself, everything here serves one thread at a time. An output refers to the
 * tensors of one record until it is placed; tensors that are read own their memory.
 */
package io.weft.spark.kryo;

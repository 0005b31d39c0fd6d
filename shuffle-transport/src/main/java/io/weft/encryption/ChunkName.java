package io.weft.encryption;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The name of a chunk: its map output, partition and position. A chunk that is encrypted under one
 * name cannot be decrypted under another, so exchanged chunks are detected. The encrypted bytes do
 * not contain the name; the reader knows which chunk it requested.
 *
 * @param shuffleId of the map output
 * @param mapId of the map output, different for each attempt of a map task
 * @param partition of the chunk
 * @param position among the chunks of its partition, from 0
 */
public record ChunkName(int shuffleId, long mapId, int partition, int position) {
  private static final int BYTES = 3 * Integer.BYTES + Long.BYTES;

  /** The bytes that the authentication tags cover: the components in order, little-endian. */
  byte[] toBytes() {
    return ByteBuffer.allocate(BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(shuffleId)
        .putLong(mapId)
        .putInt(partition)
        .putInt(position)
        .array();
  }
}

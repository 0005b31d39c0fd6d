package io.weft.encryption;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Which chunk of which map output one is: what is sealed under one name cannot be opened under
 * another, so a chunk in the place of another is noticed. It is nowhere in the bytes of the chunk;
 * whoever opens it knows what it asked for.
 *
 * @param shuffleId of the map output
 * @param mapId of the map output, another one for each attempt of a map task
 * @param partition of the chunk
 * @param position among the chunks of its partition, from 0 on
 */
public record ChunkName(int shuffleId, long mapId, int partition, int position) {
  private static final int BYTES = 3 * Integer.BYTES + Long.BYTES;

  /** As it is covered by the tags: little-endian, in the order of the components. */
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

package io.weft.crosshost.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Cuts a list of arrays, as bytes, into waves of a limited size, in order. Both ends of a transfer
 * cut lists of the same lengths in the same way. Stateless.
 */
final class Waves {
  private Waves() {}

  /** The waves; an empty list for no arrays. */
  static List<List<TypedBuffer>> of(List<TypedBuffer> arrays, long waveBytes) {
    List<List<TypedBuffer>> waves = new ArrayList<>();
    List<TypedBuffer> wave = new ArrayList<>();
    long room = waveBytes;
    for (TypedBuffer array : arrays) {
      TypedBuffer bytes = array.as(DataType.INT8);
      for (long at = 0; at < bytes.count(); ) {
        long length = Math.min(room, bytes.count() - at);
        wave.add(bytes.slice(at, length));
        at += length;
        room -= length;
        if (room == 0) {
          waves.add(wave);
          wave = new ArrayList<>();
          room = waveBytes;
        }
      }
    }
    if (!wave.isEmpty()) {
      waves.add(wave);
    }
    return waves;
  }
}

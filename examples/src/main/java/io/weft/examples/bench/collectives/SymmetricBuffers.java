package io.weft.examples.bench.collectives;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.symmetric.SymmetricArena;
import io.weft.collectives.symmetric.SymmetricOptions;
import io.weft.collectives.symmetric.Window;
import io.weft.memory.Memory;
import java.nio.file.Path;

/** Windows of symmetric memory, in which all ranks reach each other's bytes. */
final class SymmetricBuffers implements RankBuffers {
  private final SymmetricArena arena;
  private Window sends;
  private Window receives;

  SymmetricBuffers(Communicator communicator, Path folder) {
    this.arena = SymmetricArena.open(communicator, SymmetricOptions.in(folder));
  }

  @Override
  public void reserve(long bytes) {
    if (sends == null || bytes > sends.bytes()) {
      if (sends != null) {
        sends.close();
        receives.close();
      }
      sends = touched(bytes);
      receives = touched(bytes);
    }
  }

  private Window touched(long bytes) {
    Window window = arena.window(bytes);
    Memory.setMemory(window.address(), bytes, (byte) 0);
    return window;
  }

  @Override
  public TypedBuffer send(DataType type, long count) {
    return sends.buffer(0, type, count);
  }

  @Override
  public TypedBuffer receive(DataType type, long count) {
    return receives.buffer(0, type, count);
  }

  @Override
  public void close() {
    arena.close();
  }
}

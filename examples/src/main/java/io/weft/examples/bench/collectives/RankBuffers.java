package io.weft.examples.bench.collectives;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.symmetric.SymmetricArena;
import io.weft.collectives.symmetric.SymmetricOptions;
import io.weft.collectives.symmetric.Window;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/** The send and receive buffers of a rank; their pages are touched before use. For one thread. */
interface RankBuffers extends AutoCloseable {
  /** Allocates buffers of at least this size; old content is lost. Collective. */
  void reserve(long bytes);

  TypedBuffer send(DataType type, long count);

  TypedBuffer receive(DataType type, long count);

  @Override
  void close();

  /** Direct buffers, private to the rank. */
  static final class PrivateBuffers implements RankBuffers {
    private ByteBuffer sends = ByteBuffer.allocateDirect(0);
    private ByteBuffer receives = ByteBuffer.allocateDirect(0);

    /** Allocation sets a direct buffer to zero, so all its pages are touched. */
    @Override
    public void reserve(long bytes) {
      if (bytes > sends.capacity()) {
        sends = ByteBuffer.allocateDirect(Math.toIntExact(bytes));
        receives = ByteBuffer.allocateDirect(Math.toIntExact(bytes));
      }
    }

    @Override
    public TypedBuffer send(DataType type, long count) {
      return of(sends, type, count);
    }

    @Override
    public TypedBuffer receive(DataType type, long count) {
      return of(receives, type, count);
    }

    private static TypedBuffer of(ByteBuffer memory, DataType type, long count) {
      int bytes = Math.toIntExact(count * type.bytes());
      return TypedBuffer.wrap(memory.duplicate().position(0).limit(bytes), type);
    }

    @Override
    public void close() {
      // The garbage collector frees the buffers.
    }
  }

  /** Windows of symmetric memory, which all ranks can access. */
  static final class SymmetricBuffers implements RankBuffers {
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
}

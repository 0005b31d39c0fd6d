package io.weft.examples.bench.collectives;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import java.nio.ByteBuffer;

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
    /** As the buffers of {@code mpi-collectives.c} are. */
    private static final int ALIGNMENT = 4096;

    private ByteBuffer sends = ByteBuffer.allocateDirect(0);
    private ByteBuffer receives = ByteBuffer.allocateDirect(0);

    /** Allocation sets a direct buffer to zero, so all its pages are touched. */
    @Override
    public void reserve(long bytes) {
      if (bytes > sends.capacity()) {
        sends = allocate(bytes);
        receives = allocate(bytes);
      }
    }

    private static ByteBuffer allocate(long bytes) {
      return ByteBuffer.allocateDirect(Math.toIntExact(bytes + 2 * ALIGNMENT))
          .alignedSlice(ALIGNMENT)
          .limit(Math.toIntExact(bytes))
          .slice();
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

  /** Symmetric buffers, which all ranks can access. */
  static final class SymmetricBuffers implements RankBuffers {
    private final Communicator communicator;
    private SymmetricBuffer sends;
    private SymmetricBuffer receives;

    SymmetricBuffers(Communicator communicator) {
      this.communicator = communicator;
    }

    @Override
    public void reserve(long bytes) {
      if (sends == null || bytes > sends.elements().bytes()) {
        close();
        sends = allocate(bytes);
        receives = allocate(bytes);
      }
    }

    private SymmetricBuffer allocate(long bytes) {
      SymmetricBuffer buffer = communicator.symmetric(DataType.INT8, bytes);
      buffer
          .whyPrivate()
          .ifPresent(
              reason -> {
                throw new IllegalStateException("no symmetric memory to measure: " + reason);
              });
      return buffer;
    }

    @Override
    public TypedBuffer send(DataType type, long count) {
      return sends.elements().slice(0, count * type.bytes()).as(type);
    }

    @Override
    public TypedBuffer receive(DataType type, long count) {
      return receives.elements().slice(0, count * type.bytes()).as(type);
    }

    @Override
    public void close() {
      if (sends != null) {
        sends.close();
        receives.close();
      }
    }
  }
}

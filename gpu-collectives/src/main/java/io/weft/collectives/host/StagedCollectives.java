package io.weft.collectives.host;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.Reduction;

/**
 * Large operations on private buffers, chunk by chunk through staging buffers. See {@link
 * io.weft.collectives.Algorithm#STAGED}. Called after the entry.
 *
 * <p>Three stages in rotation let one sync serve each chunk: while chunk k is reduced, chunk k + 1
 * is staged already, and after the sync the results of chunk k are copied out. A rank that stages
 * chunk k + 1 has passed the sync of chunk k - 1. So all others have copied the results of chunk k
 * - 2, which used the same stage. The rotation continues from one operation to the next.
 *
 * <p>After the last chunk a sync is needed only for results. Without it another rank may still work
 * on the last chunk. The next operation first stages into another stage, and its entry waits for
 * that rank.
 *
 * <p>Stages hold a chunk in the layout of the buffer, so a share is at the same offset in all of
 * them. A rank's own share is never staged as input, because no other rank needs it. Two ranks that
 * reduce stage everything, and each reduces it all: measured, that is faster than results that
 * return through a stage.
 */
final class StagedCollectives {
  /** No stage, or no root. */
  static final int NONE = -1;

  /** Chunks between checks for failures. */
  static final int CHECKED_CHUNKS = 16;

  private final HostRanks host;
  private final Reductions reductions;
  private final int stageBytes;
  private final long[] sources;
  private final long[] targets = new long[2];

  /** The stage with the first chunk of the operation that is about to enter, or NONE. */
  private int first = NONE;

  StagedCollectives(HostRanks host, Reductions reductions, int stageBytes) {
    this.host = host;
    this.reductions = reductions;
    this.stageBytes = stageBytes;
    this.sources = new long[host.size()];
  }

  /** The three steps of an operation for one chunk. */
  interface Chunks {
    /** Copies the elements of a chunk that the others need into this rank's stage. */
    void stage(long chunk, int turn);

    /** Computes from the stages of all ranks. */
    void work(long chunk, int turn);

    /** Whether {@link #work} left results for others in the stages. */
    default boolean hasResults() {
      return false;
    }

    /** Copies the results of the others from their stages. */
    default void take(long chunk, int turn) {}
  }

  /** Processes all chunks; none is staged. */
  void run(long chunks, Chunks steps) {
    run(chunks, steps, false);
  }

  /**
   * Processes all chunks.
   *
   * @param staged whether all ranks have staged the first chunk before the entry
   */
  private void run(long chunks, Chunks steps, boolean staged) {
    int turn = first;
    if (first < 0) {
      turn = host.nextStage();
      steps.stage(0, turn);
    }
    first = NONE;
    if (!staged) {
      host.sync();
    }
    for (long chunk = 0; chunk < chunks; chunk++) {
      steps.work(chunk, turn);
      int next = turn;
      boolean last = chunk + 1 == chunks;
      if (!last) {
        if (chunk % CHECKED_CHUNKS == CHECKED_CHUNKS - 1) {
          host.check();
        }
        next = host.nextStage();
        steps.stage(chunk + 1, next);
      }
      if (!last || steps.hasResults()) {
        host.sync();
        steps.take(chunk, turn);
      }
      turn = next;
    }
  }

  /** The address of a rank's stage. */
  long stage(int index, int turn) {
    return host.block(index).stage(turn);
  }

  /**
   * Stages the first chunk of an all-reduce or reduce before its entry, which then tells the others
   * of it. If another rank has not done so, they sync.
   *
   * @param onlyRoot the only rank that takes results, or {@link #NONE} if all do
   */
  void stageFirst(TypedBuffer send, int onlyRoot) {
    first = host.nextStage();
    stageToReduce(send, onlyRoot, 0, first);
  }

  private void stageToReduce(TypedBuffer send, int onlyRoot, long chunk, int turn) {
    if (host.size() > 2) {
      stageShares(send, chunk, turn);
    } else if (onlyRoot != host.me()) {
      int bytes = send.type().bytes();
      long from = send.address() + chunk * (stageBytes / bytes) * bytes;
      LibraryCopy.copy(from, stage(host.me(), turn), chunkLength(send, chunk) * bytes);
    }
  }

  private void stageShares(TypedBuffer send, long chunk, int turn) {
    int bytes = send.type().bytes();
    long from = send.address() + chunk * (stageBytes / bytes) * bytes;
    copyOtherShares(shares(send, chunk), bytes, from, stage(host.me(), turn));
  }

  /** The shares of a chunk. */
  private Shares shares(TypedBuffer send, long chunk) {
    return new Shares(chunkLength(send, chunk), host.size(), send.type().bytes());
  }

  /** The elements of a chunk. */
  private long chunkLength(TypedBuffer send, long chunk) {
    long chunkCount = stageBytes / send.type().bytes();
    return Math.min(chunkCount, send.count() - chunk * chunkCount);
  }

  /**
   * Reduces.
   *
   * @param staged whether all ranks have staged the first chunk
   */
  void allReduce(AllReduce operation, boolean staged) {
    reduce(operation.send(), operation.receive(), operation.op(), NONE, staged);
  }

  /** As {@link #allReduce}, but only the root copies the results. */
  void reduce(Reduce operation, boolean staged) {
    reduce(operation.send(), operation.receive(), operation.op(), operation.root(), staged);
  }

  private void reduce(
      TypedBuffer send, TypedBuffer receive, ReduceOp op, int onlyRoot, boolean staged) {
    long chunks = chunks(send.count(), stageBytes / send.type().bytes());
    if (host.size() == 2) {
      run(chunks, reductionOfAll(send, receive, op, onlyRoot), staged);
    } else {
      run(chunks, reductionOfShares(send, receive, op, onlyRoot), staged);
    }
  }

  private boolean takes(int onlyRoot) {
    return onlyRoot == NONE || onlyRoot == host.me();
  }

  /** A rank that takes results reduces all elements. */
  private Chunks reductionOfAll(TypedBuffer send, TypedBuffer receive, ReduceOp op, int onlyRoot) {
    int bytes = send.type().bytes();
    Reduction reduction = reductions.of(send.type(), op);
    return new Chunks() {
      @Override
      public void stage(long chunk, int turn) {
        stageToReduce(send, onlyRoot, chunk, turn);
      }

      @Override
      public void work(long chunk, int turn) {
        if (takes(onlyRoot)) {
          long place = chunk * (stageBytes / bytes) * bytes;
          fillSources(turn, 0, send.address() + place);
          targets[0] = receive.address() + place;
          reduction.run(
              sources,
              sources.length,
              targets,
              1,
              chunkLength(send, chunk),
              Reductions.divisor(op, host.size()));
        }
      }
    };
  }

  /** Every rank reduces its share, and those that take results copy them from the stages. */
  private Chunks reductionOfShares(
      TypedBuffer send, TypedBuffer receive, ReduceOp op, int onlyRoot) {
    boolean takes = takes(onlyRoot);
    int bytes = send.type().bytes();
    long chunkCount = stageBytes / bytes;
    Reduction reduction = reductions.of(send.type(), op);
    return new Chunks() {
      @Override
      public void stage(long chunk, int turn) {
        stageToReduce(send, onlyRoot, chunk, turn);
      }

      @Override
      public boolean hasResults() {
        return true;
      }

      @Override
      public void work(long chunk, int turn) {
        Shares shares = shares(send, chunk);
        long share = shares.start(host.me()) * bytes;
        long place = chunk * chunkCount * bytes + share;
        fillSources(turn, share, send.address() + place);
        targets[0] = StagedCollectives.this.stage(host.me(), turn) + share;
        targets[1] = takes ? receive.address() + place : 0;
        reduction.run(
            sources,
            sources.length,
            targets,
            takes ? 2 : 1,
            shares.length(host.me()),
            Reductions.divisor(op, host.size()));
      }

      @Override
      public void take(long chunk, int turn) {
        if (takes) {
          Shares shares = shares(send, chunk);
          takeShares(shares, bytes, turn, receive.address() + chunk * chunkCount * bytes);
        }
      }
    };
  }

  int stageBytes() {
    return stageBytes;
  }

  /** The number of chunks of this many bytes, at least one. */
  long chunks(long bytes) {
    return chunks(bytes, stageBytes);
  }

  private static long chunks(long count, long chunkCount) {
    return Math.max(1, (count + chunkCount - 1) / chunkCount);
  }

  /** Copies all but this rank's own share: the elements before it and after it. */
  private void copyOtherShares(Shares shares, int bytes, long from, long to) {
    long before = shares.start(host.me()) * bytes;
    long after = shares.start(host.me() + 1) * bytes;
    long end = shares.start(host.size()) * bytes;
    LibraryCopy.copy(from, to, before);
    LibraryCopy.copy(from + after, to + after, end - after);
  }

  private void fillSources(int turn, long offsetInStage, long own) {
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = peer == host.me() ? own : stage(peer, turn) + offsetInStage;
    }
  }

  private void takeShares(Shares shares, int bytes, int turn, long receive) {
    for (int peer = 0; peer < host.size(); peer++) {
      if (peer != host.me()) {
        long share = shares.start(peer) * bytes;
        LibraryCopy.copyToAny(
            stage(peer, turn) + share, receive + share, shares.length(peer) * bytes);
      }
    }
  }

  void allGather(AllGather operation) {
    long part = operation.send().bytes();
    pass(part, operation.send().address(), operation.receive().address());
  }

  void broadcast(Broadcast operation) {
    TypedBuffer receive = operation.receive();
    boolean isRoot = operation.root() == host.me();
    if (isRoot) {
      copyUnlessSame(operation.send().address(), receive.address(), receive.bytes());
    }
    passFrom(operation.root(), receive.bytes(), receive.address());
  }

  private static void copyUnlessSame(long from, long to, long bytes) {
    if (from != to) {
      LibraryCopy.copyToAny(from, to, bytes);
    }
  }

  /**
   * Every rank passes its part to all others, and copies it to its own buffer while the cache still
   * has it.
   */
  private void pass(long bytes, long send, long receive) {
    long own = receive + host.me() * bytes;
    run(
        chunks(bytes, stageBytes),
        new Chunks() {
          @Override
          public void stage(long chunk, int turn) {
            long from = send + chunk * stageBytes;
            LibraryCopy.copy(
                from, StagedCollectives.this.stage(host.me(), turn), length(bytes, chunk));
            copyUnlessSame(from, own + chunk * stageBytes, length(bytes, chunk));
          }

          @Override
          public void work(long chunk, int turn) {
            for (int peer = 0; peer < host.size(); peer++) {
              if (peer != host.me()) {
                LibraryCopy.copyToAny(
                    StagedCollectives.this.stage(peer, turn),
                    receive + peer * bytes + chunk * stageBytes,
                    length(bytes, chunk));
              }
            }
          }
        });
  }

  /** One rank passes the buffer to all others. */
  private void passFrom(int root, long bytes, long buffer) {
    run(
        chunks(bytes, stageBytes),
        new Chunks() {
          @Override
          public void stage(long chunk, int turn) {
            if (root == host.me()) {
              LibraryCopy.copy(
                  buffer + chunk * stageBytes,
                  StagedCollectives.this.stage(root, turn),
                  length(bytes, chunk));
            }
          }

          @Override
          public void work(long chunk, int turn) {
            if (root != host.me()) {
              LibraryCopy.copyToAny(
                  StagedCollectives.this.stage(root, turn),
                  buffer + chunk * stageBytes,
                  length(bytes, chunk));
            }
          }
        });
  }

  private long length(long bytes, long chunk) {
    return Math.min(stageBytes, bytes - chunk * stageBytes);
  }

  /** A stage holds a chunk of every rank's part, one after the other. */
  void reduceScatter(ReduceScatter operation) {
    TypedBuffer send = operation.send();
    TypedBuffer receive = operation.receive();
    int bytes = send.type().bytes();
    long chunkCount = stageBytes / bytes / host.size();
    Reduction reduction = reductions.of(send.type(), operation.op());
    run(
        chunks(receive.count(), chunkCount),
        new Chunks() {
          private long count(long chunk) {
            return Math.min(chunkCount, receive.count() - chunk * chunkCount);
          }

          @Override
          public void stage(long chunk, int turn) {
            long to = StagedCollectives.this.stage(host.me(), turn);
            long from = send.address() + chunk * chunkCount * bytes;
            for (int peer = 0; peer < host.size(); peer++) {
              if (peer != host.me()) {
                LibraryCopy.copy(
                    from + peer * receive.bytes(),
                    to + peer * chunkCount * bytes,
                    count(chunk) * bytes);
              }
            }
          }

          @Override
          public void work(long chunk, int turn) {
            long place = chunk * chunkCount * bytes;
            long own = send.address() + host.me() * receive.bytes() + place;
            fillSources(turn, host.me() * chunkCount * bytes, own);
            targets[0] = receive.address() + place;
            reduction.run(
                sources,
                sources.length,
                targets,
                1,
                count(chunk),
                Reductions.divisor(operation.op(), host.size()));
          }
        });
  }

  /**
   * A stage holds a chunk of the part for every rank, one after the other. Both buffers may be the
   * same: a chunk of every part is staged before chunks of other ranks take its place.
   */
  void allToAll(TypedBuffer send, TypedBuffer receive) {
    long part = send.bytes() / host.size();
    long room = stageBytes / host.size() & -Long.BYTES;
    int me = host.me();
    run(
        chunks(part, room),
        new Chunks() {
          private long length(long chunk) {
            return Math.min(room, part - chunk * room);
          }

          @Override
          public void stage(long chunk, int turn) {
            long to = StagedCollectives.this.stage(me, turn);
            for (int peer = 0; peer < host.size(); peer++) {
              long place = peer * part + chunk * room;
              if (peer == me) {
                copyUnlessSame(send.address() + place, receive.address() + place, length(chunk));
              } else {
                LibraryCopy.copy(send.address() + place, to + peer * room, length(chunk));
              }
            }
          }

          @Override
          public void work(long chunk, int turn) {
            for (int peer = 0; peer < host.size(); peer++) {
              if (peer != me) {
                LibraryCopy.copyToAny(
                    StagedCollectives.this.stage(peer, turn) + me * room,
                    receive.address() + peer * part + chunk * room,
                    length(chunk));
              }
            }
          }
        });
  }
}

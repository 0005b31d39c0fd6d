package io.weft.collectives.host;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.Reduction;
import io.weft.memory.Memory;

/**
 * Large operations on private buffers, chunk by chunk through staging buffers. See {@link
 * io.weft.collectives.Algorithm#STAGED}. Called after the entry.
 *
 * <p>Three stages in rotation let one sync serve each chunk: while chunk k is reduced, chunk k + 1
 * is staged already, and after the sync the results of chunk k are copied out. A rank that stages
 * chunk k + 1 has passed the sync of chunk k - 1. So all others have copied the results of chunk k
 * - 2, which used the same stage. The rotation continues from one operation to the next.
 *
 * <p>Stages hold a chunk in the layout of the buffer, so a share is at the same offset in all of
 * them. A rank's own share is never staged as input, because no other rank needs it.
 */
final class StagedCollectives {
  private static final int NONE = -1;

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
  private interface Chunks {
    /** Copies the elements of a chunk that the others need into this rank's stage. */
    void stage(long chunk, int turn);

    /** Computes from the stages of all ranks. */
    void work(long chunk, int turn);

    /** Copies the results of the others from their stages. */
    void take(long chunk, int turn);
  }

  private void run(long chunks, Chunks steps) {
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
      if (chunk + 1 < chunks) {
        next = host.nextStage();
        steps.stage(chunk + 1, next);
      }
      host.sync();
      steps.take(chunk, turn);
      turn = next;
    }
  }

  private long stage(int index, int turn) {
    return host.block(index).stage(turn);
  }

  /**
   * Stages the first chunk of an all-reduce or reduce before its entry, which then tells the others
   * of it. If another rank has not done so, they sync.
   */
  void stageFirst(TypedBuffer send) {
    first = host.nextStage();
    stageShares(send, 0, first);
  }

  private void stageShares(TypedBuffer send, long chunk, int turn) {
    int bytes = send.type().bytes();
    long from = send.address() + chunk * (stageBytes / bytes) * bytes;
    copyOtherShares(shares(send, chunk), bytes, from, stage(host.me(), turn));
  }

  /** The shares of a chunk. */
  private Shares shares(TypedBuffer send, long chunk) {
    int bytes = send.type().bytes();
    long chunkCount = stageBytes / bytes;
    long count = Math.min(chunkCount, send.count() - chunk * chunkCount);
    return new Shares(count, host.size(), bytes);
  }

  /**
   * Reduces.
   *
   * @param staged whether all ranks have staged the first chunk
   */
  void allReduce(AllReduce operation, boolean staged) {
    reduce(operation.send(), operation.receive(), operation.op(), -1, staged);
  }

  /** As {@link #allReduce}, but only the root copies the results. */
  void reduce(Reduce operation, boolean staged) {
    reduce(operation.send(), operation.receive(), operation.op(), operation.root(), staged);
  }

  private void reduce(
      TypedBuffer send, TypedBuffer receive, ReduceOp op, int onlyRoot, boolean staged) {
    int bytes = send.type().bytes();
    long chunkCount = stageBytes / bytes;
    boolean takes = onlyRoot < 0 || onlyRoot == host.me();
    Reduction reduction = reductions.of(send.type(), op);
    run(
        chunks(send.count(), chunkCount),
        new Chunks() {
          @Override
          public void stage(long chunk, int turn) {
            stageShares(send, chunk, turn);
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
        },
        staged);
  }

  private static long chunks(long count, long chunkCount) {
    return Math.max(1, (count + chunkCount - 1) / chunkCount);
  }

  /** Copies all but this rank's own share: the elements before it and after it. */
  private void copyOtherShares(Shares shares, int bytes, long from, long to) {
    long before = shares.start(host.me()) * bytes;
    long after = shares.start(host.me() + 1) * bytes;
    long end = shares.start(host.size()) * bytes;
    Memory.copy(from, to, before);
    Memory.copy(from + after, to + after, end - after);
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
        Memory.copy(stage(peer, turn) + share, receive + share, shares.length(peer) * bytes);
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
      Memory.copy(from, to, bytes);
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
            Memory.copy(from, StagedCollectives.this.stage(host.me(), turn), length(bytes, chunk));
            copyUnlessSame(from, own + chunk * stageBytes, length(bytes, chunk));
          }

          @Override
          public void work(long chunk, int turn) {
            for (int peer = 0; peer < host.size(); peer++) {
              if (peer != host.me()) {
                Memory.copy(
                    StagedCollectives.this.stage(peer, turn),
                    receive + peer * bytes + chunk * stageBytes,
                    length(bytes, chunk));
              }
            }
          }

          @Override
          public void take(long chunk, int turn) {
            // The work step copied everything; there are no results to take.
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
              Memory.copy(
                  buffer + chunk * stageBytes,
                  StagedCollectives.this.stage(root, turn),
                  length(bytes, chunk));
            }
          }

          @Override
          public void work(long chunk, int turn) {
            if (root != host.me()) {
              Memory.copy(
                  StagedCollectives.this.stage(root, turn),
                  buffer + chunk * stageBytes,
                  length(bytes, chunk));
            }
          }

          @Override
          public void take(long chunk, int turn) {
            // The work step copied everything.
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
                Memory.copy(
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

          @Override
          public void take(long chunk, int turn) {
            // Every rank keeps its own result.
          }
        });
  }
}

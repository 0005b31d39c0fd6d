package io.weft.collectives.host;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.Broadcast;
import io.weft.collectives.DataType;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;

/**
 * Large operations in which every member sends only to the next one, so that each byte crosses each
 * member's network interface about once each way. See {@link io.weft.collectives.Algorithm#RING}.
 *
 * <p>A buffer is processed in segments, whose blocks stay in the cache, and a block in chunks. A
 * chunk goes to the next member as soon as it has arrived (and is combined), while the rest of the
 * block is still arriving. One thread at a time.
 */
final class RingCollectives {
  /** Bytes of partial results in one chunk: enough to hide the latency of a message. */
  static final int CHUNK_BYTES = 128 << 10;

  /** Bytes of partial results in one member's block of a segment. */
  static final int BLOCK_BYTES = 1 << 20;

  /** The limit of chunks that wait for the next member. */
  private static final int WINDOW = 8;

  private final RankGroup members;
  private final int me;
  private final int size;
  private final Scratch raw = new Scratch();
  private final Scratch[] partial = {new Scratch(), new Scratch()};
  private final Scratch slots = new Scratch();

  /** Messages of this operation sent to the next member, and received from the previous one. */
  private int sent;

  private int received;

  /** For each partial buffer, the number of messages sent when its last one was sent. */
  private final int[] lastFrom = new int[2];

  RingCollectives(RankGroup members) {
    this.members = members;
    this.me = members.me();
    this.size = members.size();
  }

  /**
   * One block for every member, and its address on this rank.
   *
   * @param count elements of a whole part or buffer
   */
  private record Blocks(long address, DataType type, Shares shares, long stride, long count) {
    /** Blocks that are the shares of one run of elements. */
    static Blocks shares(TypedBuffer buffer, long first, long count, int members) {
      return new Blocks(
          buffer.address() + first * buffer.type().bytes(),
          buffer.type(),
          new Shares(count, members, buffer.type().bytes()),
          0,
          count);
    }

    /** Blocks that are a run of elements at the same offset in every member's part. */
    static Blocks parts(TypedBuffer buffer, long first, long count, long partBytes) {
      long address = buffer.address() + first * buffer.type().bytes();
      return new Blocks(address, buffer.type(), null, partBytes, count);
    }

    long at(int member) {
      return address + (shares == null ? member * stride : shares.start(member) * type.bytes());
    }

    long count(int member) {
      return shares == null ? count : shares.length(member);
    }
  }

  private void begin() {
    sent = 0;
    received = 0;
    lastFrom[0] = 0;
    lastFrom[1] = 0;
  }

  private void send(Call call, long address, long bytes) {
    members.send(call, sent, members.at(1), address, bytes);
    sent++;
  }

  private void receive(Call call, long address, long bytes) {
    members.receive(call, received, members.at(-1), address, bytes);
    received++;
  }

  /** Waits until at most this many of the expected messages are missing. */
  private void awaitAllBut(long left) {
    members.awaitReceives(members.at(-1), (int) left);
  }

  /**
   * Waits until the first messages, up to this number, have been sent, so that their memory can be
   * reused.
   */
  private void awaitSent(int number) {
    members.awaitSends(members.at(1), sent - number);
  }

  private static long chunks(long count, long chunk) {
    return (count + chunk - 1) / chunk;
  }

  /**
   * A ring of reduce-scatter steps, then one of all-gather steps (Patarasuk, Yuan, "Bandwidth
   * optimal all-reduce algorithms for clusters of workstations", 2009).
   */
  void allReduce(Call call, AllReduce operation, PartialResults partials) {
    TypedBuffer receive = operation.receive();
    long segment = (long) size * (BLOCK_BYTES / partials.type().bytes());
    begin();
    for (long first = 0; first < receive.count(); first += segment) {
      long count = Math.min(segment, receive.count() - first);
      Blocks results = Blocks.shares(receive, first, count, size);
      reduceScatter(
          call, Blocks.shares(operation.send(), first, count, size), partials, results.at(me));
      allGather(call, results);
    }
    members.finish();
  }

  /** The first half of {@link #allReduce}. */
  void reduceScatter(Call call, ReduceScatter operation, PartialResults partials) {
    TypedBuffer receive = operation.receive();
    long segment = BLOCK_BYTES / partials.type().bytes();
    begin();
    for (long first = 0; first < receive.count(); first += segment) {
      long count = Math.min(segment, receive.count() - first);
      Blocks own = Blocks.parts(operation.send(), first, count, receive.bytes());
      reduceScatter(call, own, partials, receive.address() + first * receive.type().bytes());
    }
    members.finish();
  }

  /** The second half of {@link #allReduce}. */
  void allGather(Call call, AllGather operation) {
    TypedBuffer send = operation.send();
    TypedBuffer receive = operation.receive();
    long own = receive.address() + me * send.bytes();
    if (own != send.address()) {
      Memory.copy(send.address(), own, send.bytes());
    }
    long segment = BLOCK_BYTES / send.type().bytes();
    begin();
    for (long first = 0; first < send.count(); first += segment) {
      long count = Math.min(segment, send.count() - first);
      allGather(call, Blocks.parts(receive, first, count, send.bytes()));
    }
    members.finish();
  }

  /**
   * Block b starts at member b + 1 and goes around the ring. Every member adds its own elements,
   * until the block is complete at member b. So in step s this member receives block me - 2 - s.
   *
   * @param target address for this member's block
   */
  private void reduceScatter(Call call, Blocks own, PartialResults partials, long target) {
    int rawBytes = own.type().bytes();
    int partialBytes = partials.type().bytes();
    long chunk = CHUNK_BYTES / partialBytes;
    int start = members.at(-1);
    for (long first = 0; first < own.count(start); first += chunk) {
      long count = Math.min(chunk, own.count(start) - first);
      send(call, own.at(start) + first * rawBytes, count * rawBytes);
    }
    for (int step = 0; step < size - 1; step++) {
      int block = members.at(-2 - step);
      long count = own.count(block);
      awaitSent(lastFrom[step % 2]);
      long result = partial[step % 2].address(count * partialBytes);
      int inBytes = step == 0 ? rawBytes : partialBytes;
      long in = step == 0 ? raw.address(count * rawBytes) : result;
      for (long first = 0; first < count; first += chunk) {
        receive(call, in + first * inBytes, Math.min(chunk, count - first) * inBytes);
      }
      for (long first = 0; first < count; first += chunk) {
        long length = Math.min(chunk, count - first);
        awaitAllBut(chunks(count - first, chunk) - 1);
        long mine = own.at(block) + first * rawBytes;
        long arrived = in + first * inBytes;
        if (step == size - 2) {
          finish(partials, step, arrived, mine, target + first * rawBytes, length);
        } else {
          long sum = result + first * partialBytes;
          combine(partials, step, arrived, mine, sum, length);
          send(call, sum, length * partialBytes);
        }
      }
      lastFrom[step % 2] = sent;
    }
  }

  private static void combine(
      PartialResults partials, int step, long arrived, long own, long sum, long count) {
    if (step == 0) {
      partials.two(arrived, own, sum, count);
    } else {
      partials.add(sum, own, count);
    }
  }

  private static void finish(
      PartialResults partials, int step, long arrived, long own, long target, long count) {
    if (step == 0) {
      partials.lastTwo(arrived, own, target, count);
    } else {
      partials.last(arrived, own, target, count);
    }
  }

  /**
   * Every member passes on the block that it received in the step before, beginning with its own.
   */
  private void allGather(Call call, Blocks blocks) {
    int bytes = blocks.type().bytes();
    long chunk = CHUNK_BYTES / bytes;
    for (long first = 0; first < blocks.count(me); first += chunk) {
      send(call, blocks.at(me) + first * bytes, Math.min(chunk, blocks.count(me) - first) * bytes);
    }
    for (int step = 0; step < size - 1; step++) {
      int block = members.at(-1 - step);
      long count = blocks.count(block);
      for (long first = 0; first < count; first += chunk) {
        receive(call, blocks.at(block) + first * bytes, Math.min(chunk, count - first) * bytes);
      }
      for (long first = 0; first < count; first += chunk) {
        long length = Math.min(chunk, count - first);
        awaitAllBut(chunks(count - first, chunk) - 1);
        if (step < size - 2) {
          send(call, blocks.at(block) + first * bytes, length * bytes);
        }
      }
    }
    awaitSent(Math.max(0, sent - WINDOW));
  }

  /**
   * A chain from the root to the member before it, chunk by chunk (Patarasuk, Faraj, Yuan,
   * "Pipelined broadcast on Ethernet switched clusters", 2006).
   */
  void broadcast(Call call, Broadcast operation) {
    TypedBuffer receive = operation.receive();
    int place = Math.floorMod(me - operation.root(), size);
    long data = place == 0 ? operation.send().address() : receive.address();
    long bytes = receive.bytes();
    begin();
    for (long first = 0; first < bytes; first += CHUNK_BYTES) {
      long length = Math.min(CHUNK_BYTES, bytes - first);
      if (place > 0) {
        receive(call, data + first, length);
        awaitAllBut(0);
      }
      if (place < size - 1) {
        send(call, data + first, length);
        awaitSent(Math.max(0, sent - WINDOW));
      }
    }
    if (data != receive.address()) {
      Memory.copy(data, receive.address(), bytes);
    }
    members.finish();
  }

  /**
   * The chain of {@link #broadcast} in the other direction: every member adds its own elements to
   * the arriving ones. The member after the root begins.
   */
  void reduce(Call call, Reduce operation, PartialResults partials) {
    TypedBuffer send = operation.send();
    int place = Math.floorMod(me - operation.root() - 1, size);
    int rawBytes = send.type().bytes();
    int partialBytes = partials.type().bytes();
    long chunk = CHUNK_BYTES / partialBytes;
    int inBytes = place == 1 ? rawBytes : partialBytes;
    long memory = slots.address((long) (WINDOW + 1) * CHUNK_BYTES);
    long incoming = raw.address(CHUNK_BYTES);
    begin();
    for (long first = 0; first < send.count(); first += chunk) {
      long length = Math.min(chunk, send.count() - first);
      long own = send.address() + first * rawBytes;
      if (place == 0) {
        send(call, own, length * rawBytes);
        awaitSent(Math.max(0, sent - WINDOW));
        continue;
      }
      long sum = memory + sent % (WINDOW + 1) * (long) CHUNK_BYTES;
      long in = place == 1 ? incoming : sum;
      receive(call, in, length * inBytes);
      awaitAllBut(0);
      if (place == size - 1) {
        long target = operation.receive().address() + first * rawBytes;
        finish(partials, place - 1, in, own, target, length);
      } else {
        combine(partials, place - 1, in, own, sum, length);
        send(call, sum, length * partialBytes);
        awaitSent(Math.max(0, sent - WINDOW));
      }
    }
    members.finish();
  }
}

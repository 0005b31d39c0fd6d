package io.weft.transfers;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The counters of transfers, each from the start of the executor. */
public enum TransferCounter {
  CLIQUE_REQUESTS("rounds with new transfers"),
  CLIQUE_REUSES("of these, rounds with an open communicator"),
  CLIQUES_RETIRED("idle communicators that both ends closed"),
  MANIFESTS("manifests sent, one per round of a clique"),
  GROUPS("groups that moved payload"),
  GROUPS_BEHIND_DEVICES("of these, groups enqueued on GPUs before their arrays were written"),
  SENT("transfers sent"),
  RECEIVED("transfers received"),
  BYTES_SENT("bytes of transfers sent, after encoding"),
  BYTES_RECEIVED("bytes of transfers received, before decoding"),
  CHUNKS_ENCODED("chunks of arrays encoded"),
  CHUNKS_DECODED("chunks of arrays decoded"),
  FAILED("transfers that failed"),
  BATCHES_BY_BYTES("batches launched with enough bytes"),
  BATCHES_BY_AGE("batches launched at their age limit"),
  BATCHES_BY_NEED("batches launched for a thread that waited"),
  BATCHES_BY_CALL("batches of transfers that were not deferred"),
  DEFINITION_WAITS("transfers whose source was not recorded at their launch"),
  DEFINITION_WAIT_NANOS("nanoseconds that these waited"),
  PEER_WAIT_NANOS("nanoseconds that lanes waited for their peers");

  private final String description;

  TransferCounter(String description) {
    this.description = description;
  }

  /** One line for a table of metrics. */
  public String description() {
    return description;
  }

  static TransferCounter of(BatchReason reason) {
    return switch (reason) {
      case BYTES -> BATCHES_BY_BYTES;
      case AGE -> BATCHES_BY_AGE;
      case NEED -> BATCHES_BY_NEED;
      case CALL -> BATCHES_BY_CALL;
    };
  }

  /** The reason why a batch was launched. */
  enum BatchReason {
    /** The batch had enough bytes. */
    BYTES,
    /** The batch was old enough. */
    AGE,
    /** A thread waited for one of the transfers. */
    NEED,
    /** The transfers were not deferred. */
    CALL
  }

  /** The running values behind {@link TransferCounter}. Thread-safe and cheap to increment. */
  static final class TransferCounters {
    private final Map<TransferCounter, LongAdder> values = new EnumMap<>(TransferCounter.class);

    TransferCounters() {
      for (TransferCounter counter : TransferCounter.values()) {
        values.put(counter, new LongAdder());
      }
    }

    void add(TransferCounter counter, long amount) {
      values.get(counter).add(amount);
    }

    void increment(TransferCounter counter) {
      add(counter, 1);
    }

    /** The value of every counter. The values are not read at the same instant. */
    Map<TransferCounter, Long> snapshot() {
      Map<TransferCounter, Long> snapshot = new EnumMap<>(TransferCounter.class);
      values.forEach((counter, value) -> snapshot.put(counter, value.sum()));
      return snapshot;
    }
  }
}

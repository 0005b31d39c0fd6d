package io.weft.transfers;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The counters of transfers, each from the start of the executor. */
public enum TransferCounter {
  CLIQUE_REQUESTS("rounds with new transfers, which need the communicator of their clique"),
  CLIQUE_REUSES("of these, rounds that found the communicator open"),
  CLIQUES_RETIRED("communicators that both ends gave up because they were idle"),
  MANIFESTS("manifests sent, one for each round of a clique"),
  GROUPS("groups that moved payload, in both directions at once"),
  GROUPS_BEHIND_DEVICES(
      "of these, groups enqueued on GPUs before the work that writes their arrays was complete"),
  SENT("transfers sent"),
  RECEIVED("transfers received"),
  BYTES_SENT("bytes of transfers sent, after encoding"),
  BYTES_RECEIVED("bytes of transfers received, before decoding"),
  CHUNKS_ENCODED("chunks of arrays that were encoded for sending"),
  CHUNKS_DECODED("chunks of arrays that arrived and were decoded"),
  FAILED("transfers that failed"),
  BATCHES_BY_BYTES("batches launched because they had enough bytes"),
  BATCHES_BY_AGE("batches launched because they were old enough"),
  BATCHES_BY_NEED("batches launched because a thread waited"),
  BATCHES_BY_CALL("batches launched at once because their transfers were not deferred"),
  DEFINITION_WAITS("transfers whose source was not recorded at their launch"),
  DEFINITION_WAIT_NANOS("nanoseconds that these waited for their source to be recorded"),
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

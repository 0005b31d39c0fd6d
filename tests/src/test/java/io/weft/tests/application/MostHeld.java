package io.weft.tests.application;

import io.weft.shuffle.ExchangeStatistics;
import io.weft.spark.runtime.WeftExecutor;
import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.function.FlatMapFunction;

/** The most that a task held for its reads at any of its records: not a record, for Kryo. */
public final class MostHeld implements Serializable {
  private static final long serialVersionUID = 1L;

  private long records;
  private long readers;
  private long receivingBytes;
  private long hashes;

  /** Reads all records of a task and looks at each hundredth one. */
  public static <T> FlatMapFunction<Iterator<T>, MostHeld> measure() {
    return records -> {
      MostHeld most = new MostHeld();
      while (records.hasNext()) {
        most.hashes += records.next().hashCode();
        if (most.records++ % 100 == 0) {
          most.look(WeftExecutor.exchange().statistics());
        }
      }
      return List.of(most).iterator();
    };
  }

  private void look(ExchangeStatistics now) {
    readers = Math.max(readers, now.openReaders());
    receivingBytes = Math.max(receivingBytes, now.receivingBytes());
  }

  public long records() {
    return records;
  }

  /** Sum of the records' hash codes, which does not depend on their order. */
  public long hashes() {
    return hashes;
  }

  public long readers() {
    return readers;
  }

  public long receivingBytes() {
    return receivingBytes;
  }
}

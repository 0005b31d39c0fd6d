package io.weft.spark;

import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.executor.ShuffleWriteMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Sums the shuffle metrics of all tasks that end while it is registered. */
public final class TaskTotals extends SparkListener {
  private long recordsWritten;
  private long bytesWritten;
  private long writeNanos;
  private long recordsRead;
  private long localBlocks;
  private long localBytes;
  private long remoteBlocks;

  @Override
  public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
    ShuffleWriteMetrics written = end.taskMetrics().shuffleWriteMetrics();
    recordsWritten += written.recordsWritten();
    bytesWritten += written.bytesWritten();
    writeNanos += written.writeTime();
    ShuffleReadMetrics read = end.taskMetrics().shuffleReadMetrics();
    recordsRead += read.recordsRead();
    localBlocks += read.localBlocksFetched();
    localBytes += read.localBytesRead();
    remoteBlocks += read.remoteBlocksFetched();
  }

  public synchronized long recordsWritten() {
    return recordsWritten;
  }

  public synchronized long bytesWritten() {
    return bytesWritten;
  }

  public synchronized long writeNanos() {
    return writeNanos;
  }

  public synchronized long recordsRead() {
    return recordsRead;
  }

  public synchronized long localBlocks() {
    return localBlocks;
  }

  public synchronized long localBytes() {
    return localBytes;
  }

  public synchronized long remoteBlocks() {
    return remoteBlocks;
  }
}

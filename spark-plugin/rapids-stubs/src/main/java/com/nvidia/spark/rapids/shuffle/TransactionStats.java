package com.nvidia.spark.rapids.shuffle;

/** The duration of a transaction in milliseconds, its bytes, and its rate in GiB/s. */
public class TransactionStats {
  private final double txTimeMs;
  private final long sendSize;
  private final long receiveSize;
  private final double sendThroughput;
  private final double recvThroughput;

  public TransactionStats(
      double txTimeMs,
      long sendSize,
      long receiveSize,
      double sendThroughput,
      double recvThroughput) {
    this.txTimeMs = txTimeMs;
    this.sendSize = sendSize;
    this.receiveSize = receiveSize;
    this.sendThroughput = sendThroughput;
    this.recvThroughput = recvThroughput;
  }

  public double txTimeMs() {
    return txTimeMs;
  }

  public long sendSize() {
    return sendSize;
  }

  public long receiveSize() {
    return receiveSize;
  }

  public double sendThroughput() {
    return sendThroughput;
  }

  public double recvThroughput() {
    return recvThroughput;
  }
}

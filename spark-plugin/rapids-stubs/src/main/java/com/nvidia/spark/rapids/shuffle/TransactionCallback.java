package com.nvidia.spark.rapids.shuffle;

/** Called when a transaction has ended. */
public interface TransactionCallback {
  void apply(Transaction transaction);
}

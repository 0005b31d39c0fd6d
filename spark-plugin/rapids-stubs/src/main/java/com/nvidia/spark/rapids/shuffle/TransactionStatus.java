package com.nvidia.spark.rapids.shuffle;

import scala.Enumeration;

/** How far a transaction is. */
public final class TransactionStatus {
  private static final class Values extends Enumeration {
    final Value NotStarted = Value();
    final Value InProgress = Value();
    final Value Complete = Value();
    final Value Success = Value();
    final Value Error = Value();
    final Value Cancelled = Value();
  }

  private static final Values VALUES = new Values();

  private TransactionStatus() {}

  public static Enumeration.Value NotStarted() {
    return VALUES.NotStarted;
  }

  public static Enumeration.Value InProgress() {
    return VALUES.InProgress;
  }

  public static Enumeration.Value Complete() {
    return VALUES.Complete;
  }

  public static Enumeration.Value Success() {
    return VALUES.Success;
  }

  public static Enumeration.Value Error() {
    return VALUES.Error;
  }

  public static Enumeration.Value Cancelled() {
    return VALUES.Cancelled;
  }
}

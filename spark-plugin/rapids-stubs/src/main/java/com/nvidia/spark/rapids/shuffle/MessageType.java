package com.nvidia.spark.rapids.shuffle;

import scala.Enumeration;

/** What a message is. */
public final class MessageType {
  private static final class Values extends Enumeration {
    final Value Control = Value();
    final Value MetadataRequest = Value();
    final Value TransferRequest = Value();
    final Value Buffer = Value();
  }

  private static final Values VALUES = new Values();

  private MessageType() {}

  public static Enumeration.Value Control() {
    return VALUES.Control;
  }

  public static Enumeration.Value MetadataRequest() {
    return VALUES.MetadataRequest;
  }

  public static Enumeration.Value TransferRequest() {
    return VALUES.TransferRequest;
  }

  public static Enumeration.Value Buffer() {
    return VALUES.Buffer;
  }
}

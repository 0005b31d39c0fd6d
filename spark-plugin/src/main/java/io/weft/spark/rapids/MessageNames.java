package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.MessageType;
import scala.Enumeration;

/** Names and checks of message types. Stateless. */
final class MessageNames {
  private MessageNames() {}

  static String request(int type) {
    if (type == MessageType.MetadataRequest().id()) {
      return "the request of metadata";
    }
    return type == MessageType.TransferRequest().id() ? "the request of tables" : "request " + type;
  }

  /**
   * Requires one of the two request types.
   *
   * @throws IllegalArgumentException for any other type
   */
  static int requireRequest(Enumeration.Value type) {
    if (type.equals(MessageType.MetadataRequest()) || type.equals(MessageType.TransferRequest())) {
      return type.id();
    }
    throw new IllegalArgumentException(type + " is not a type of requests");
  }

  /**
   * Requires the type of blocks.
   *
   * @throws IllegalArgumentException for any other type
   */
  static void requireBuffer(Enumeration.Value type) {
    if (!type.equals(MessageType.Buffer())) {
      throw new IllegalArgumentException(type + " is not the type of blocks");
    }
  }
}

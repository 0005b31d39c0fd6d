package io.weft.crosshost;

import io.weft.collectives.buffer.DataType;
import io.weft.crosshost.buffer.BufferShape;
import io.weft.tensor.codec.CodecKind;
import java.util.List;

/** Checks of the arguments of transfers. All throw IllegalArgumentException. */
final class TransferChecks {
  private TransferChecks() {}

  static void sameLengths(
      String operation, String arrays, int first, String peers, int second, int keys) {
    if (first != second || first != keys) {
      throw new IllegalArgumentException(
          "%s needs as many %s as %s and keys, but got %d, %d and %d"
              .formatted(operation, arrays, peers, first, second, keys));
    }
  }

  static void notEmpty(int index, BufferShape shape) {
    if (shape.isEmpty()) {
      throw new IllegalArgumentException(
          "transfer %d: the shape %s has no elements".formatted(index, shape));
    }
  }

  static void encodes(int index, CodecKind codec, DataType type) {
    if (!codec.codec().encodes(type)) {
      throw new IllegalArgumentException(
          "transfer %d: %s does not encode %s".formatted(index, codec, type));
    }
  }

  /** Exactly one end is on this executor. */
  static void oneEndHere(int index, String executor, DeviceId source, DeviceId destination) {
    boolean from = source.executor().equals(executor);
    boolean to = destination.executor().equals(executor);
    if (from && to) {
      throw new IllegalArgumentException(
          "transfer %d: source %s and destination %s are both on executor %s"
              .formatted(index, source, destination, executor));
    }
    if (!from && !to) {
      throw new IllegalArgumentException(
          "transfer %d: neither source %s nor destination %s is on executor %s"
              .formatted(index, source, destination, executor));
    }
  }

  static void twoExecutors(int index, DeviceId source, DeviceId destination) {
    if (source.executor().equals(destination.executor())) {
      throw new IllegalArgumentException(
          "transfer %d: source %s and destination %s are both on executor %s"
              .formatted(index, source, destination, source.executor()));
    }
  }

  static void exists(int index, String executor, DeviceId device, List<DeviceId> devices) {
    if (!devices.contains(device)) {
      throw new IllegalArgumentException(
          "transfer %d: executor %s has no device %d, its devices are %s"
              .formatted(
                  index,
                  executor,
                  device.ordinal(),
                  devices.stream().map(DeviceId::ordinal).toList()));
    }
  }

  /** The data must have the placement's type and number of elements. */
  static void sameShape(int index, Placement placement, SourceBuffer data) {
    if (data.buffer().type() != placement.shape().type()
        || data.buffer().count() != placement.shape().elements()) {
      throw new IllegalArgumentException(
          "transfer %d: the placement is of %s but its data has %d %s"
              .formatted(index, placement.shape(), data.buffer().count(), data.buffer().type()));
    }
  }
}

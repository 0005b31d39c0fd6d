package io.weft.collectives.peer;

import io.weft.device.descriptor.InboxAddress;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.UUID;

/**
 * The message of each rank before multicast is set up.
 *
 * <pre> long, long uuid of the GPU | long bytes | long bytes of the object | address of the inbox
 * </pre>
 *
 * @param bytes of its memory
 * @param objectBytes the size of the multicast object that this rank's driver needs for it
 * @param inbox where it receives a descriptor
 */
record MulticastOffer(UUID gpu, long bytes, long objectBytes, InboxAddress inbox) {
  byte[] encode() {
    byte[] address = inbox.encode();
    return ByteBuffer.allocate(4 * Long.BYTES + address.length)
        .putLong(gpu.getMostSignificantBits())
        .putLong(gpu.getLeastSignificantBits())
        .putLong(bytes)
        .putLong(objectBytes)
        .put(address)
        .array();
  }

  static MulticastOffer decode(byte[] message) {
    ByteBuffer in = ByteBuffer.wrap(message);
    UUID gpu = new UUID(in.getLong(), in.getLong());
    long bytes = in.getLong();
    long objectBytes = in.getLong();
    byte[] address = new byte[in.remaining()];
    in.get(address);
    return new MulticastOffer(gpu, bytes, objectBytes, InboxAddress.decode(address));
  }

  /**
   * Checks that the ranks can have one window.
   *
   * @param offers by rank
   * @throws io.weft.collectives.fault.CollectiveException of kind INVALID, the same on every rank
   */
  static void requireTeam(List<MulticastOffer> offers) {
    for (int rank = 1; rank < offers.size(); rank++) {
      MulticastOffer own = offers.get(rank);
      if (own.bytes() != offers.get(0).bytes()) {
        throw Refusal.of(
            List.of(0, rank),
            "rank 0 shares %d bytes by multicast but rank %d %d: the sizes must be equal"
                .formatted(offers.get(0).bytes(), rank, own.bytes()),
            null);
      }
      if (own.objectBytes() != offers.get(0).objectBytes()) {
        throw Refusal.of(
            List.of(0, rank),
            "the driver of rank 0 needs %d bytes for multicast, that of rank %d %d"
                .formatted(offers.get(0).objectBytes(), rank, own.objectBytes()),
            null);
      }
      for (int other = 0; other < rank; other++) {
        if (offers.get(other).gpu().equals(own.gpu())) {
          throw Refusal.of(
              List.of(other, rank),
              "rank %d and rank %d are both on GPU %s: multicast takes one rank for each GPU"
                  .formatted(other, rank, own.gpu()),
              null);
        }
      }
    }
  }
}

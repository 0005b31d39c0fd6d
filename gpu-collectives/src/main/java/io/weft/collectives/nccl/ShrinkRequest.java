package io.weft.collectives.nccl;

import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The message of a surviving rank to the other survivors of a communicator.
 *
 * @param whole the broken communicator
 * @param rank this one's rank there
 * @param nranks how many there were
 * @param obstacle why this rank cannot shrink it; empty if it can
 * @param id for the host's communicator for collectives; the id of the first rank is used
 * @param pairsId for the one for pairs
 */
record ShrinkRequest(
    String whole, int rank, int nranks, String obstacle, UniqueId id, UniqueId pairsId) {
  static ShrinkRequest of(NcclCommunicator whole) {
    return new ShrinkRequest(
        whole.id().encode(),
        whole.rank(),
        whole.nranks(),
        whole.whyNoShrinking().orElse(""),
        UniqueId.create(),
        UniqueId.create());
  }

  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeUTF(whole);
      out.writeInt(rank);
      out.writeInt(nranks);
      out.writeUTF(obstacle);
      out.writeUTF(id.encode());
      out.writeUTF(pairsId.encode());
    }
    return bytes.toByteArray();
  }

  static ShrinkRequest decode(byte[] message) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(message))) {
      return new ShrinkRequest(
          in.readUTF(),
          in.readInt(),
          in.readInt(),
          in.readUTF(),
          UniqueId.decode(in.readUTF()),
          UniqueId.decode(in.readUTF()));
    } catch (IOException e) {
      throw new IllegalArgumentException("a rank sent a damaged request to shrink", e);
    }
  }

  /**
   * Checks that the messages match.
   *
   * @param all by new rank
   * @throws CollectiveException the same on every rank
   */
  static void check(List<ShrinkRequest> all) {
    ShrinkRequest first = all.get(0);
    for (int rank = 1; rank < all.size(); rank++) {
      ShrinkRequest other = all.get(rank);
      if (!other.whole().equals(first.whole())) {
        throw new CollectiveException(
            Kind.MISMATCH,
            List.of(0, rank),
            "rank 0 was rank %d of communicator %s but rank %d was rank %d of %s"
                .formatted(first.rank(), first.whole(), rank, other.rank(), other.whole()));
      }
    }
    if (all.size() >= first.nranks()) {
      throw CollectiveException.invalid(
          "all %d ranks of communicator %s are present: there is no rank to leave out"
              .formatted(first.nranks(), first.whole()));
    }
  }

  /** Why one of them cannot shrink the communicator; empty if all can. */
  static Optional<String> obstacle(List<ShrinkRequest> all) {
    for (int rank = 0; rank < all.size(); rank++) {
      ShrinkRequest each = all.get(rank);
      if (!each.obstacle().isEmpty()) {
        return Optional.of("on rank " + each.rank() + ", " + each.obstacle());
      }
      if (rank > 0 && each.rank() <= all.get(rank - 1).rank()) {
        return Optional.of("its ranks are in another order than before, but NCCL keeps the order");
      }
    }
    return Optional.empty();
  }

  /** The missing ranks, ascending. */
  static List<Integer> missing(List<ShrinkRequest> all) {
    List<Integer> there = all.stream().map(ShrinkRequest::rank).toList();
    return IntStream.range(0, all.get(0).nranks())
        .boxed()
        .filter(rank -> !there.contains(rank))
        .toList();
  }
}

package io.weft.collectives.symmetric;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The message of a rank when all acquire cached memory: its requests and, for each request, the
 * window that it has for it.
 *
 * @param held numbers of windows, or NONE, by request
 */
record MemoryVote(List<CollectiveMemoryRequest> requests, List<Integer> held) {
  static final int NONE = -1;

  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeInt(requests.size());
    for (int i = 0; i < requests.size(); i++) {
      out.writeUTF(requests.get(i).purpose());
      out.writeLong(requests.get(i).bytes());
      out.writeInt(held.get(i));
    }
    return bytes.toByteArray();
  }

  static MemoryVote decode(byte[] message) {
    try {
      DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
      int count = in.readInt();
      List<CollectiveMemoryRequest> requests = new ArrayList<>();
      List<Integer> held = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        requests.add(new CollectiveMemoryRequest(in.readUTF(), in.readLong()));
        held.add(in.readInt());
      }
      return new MemoryVote(requests, held);
    } catch (IOException | IllegalArgumentException e) {
      throw new CollectiveException(
          Kind.MISMATCH, List.of(), "a rank's vote on collective memory is not readable", e);
    }
  }

  /** Checks that all ranks request the same memory in the same order. */
  static void requireSameRequests(List<MemoryVote> votes) {
    List<CollectiveMemoryRequest> first = votes.get(0).requests;
    for (int rank = 1; rank < votes.size(); rank++) {
      List<CollectiveMemoryRequest> other = votes.get(rank).requests;
      if (!other.equals(first)) {
        throw new CollectiveException(
            Kind.MISMATCH,
            List.of(0, rank),
            "rank 0 asks for collective memory " + first + " but rank " + rank + " for " + other);
      }
    }
  }

  /** The ranks whose window for a request is not this one. */
  static List<Integer> ranksWithout(List<MemoryVote> votes, int request, int window) {
    List<Integer> without = new ArrayList<>();
    for (int rank = 0; rank < votes.size(); rank++) {
      if (votes.get(rank).held.get(request) != window) {
        without.add(rank);
      }
    }
    return without;
  }
}

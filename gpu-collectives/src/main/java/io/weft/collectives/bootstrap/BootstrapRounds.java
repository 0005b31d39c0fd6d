package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.FailureCodec;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.device.Deadline;
import java.util.Arrays;
import java.util.List;

/**
 * Rounds of a bootstrap in which a rank that failed still takes part and sends its failure: no rank
 * waits for it, and every rank learns the reason. For one thread.
 *
 * <p>A message is a byte, 0 or 1, followed by the rank's content or its failure.
 */
public final class BootstrapRounds {
  private static final int MAX_FAILURE_BYTES = 4096;

  private final Bootstrap bootstrap;
  private final Deadline deadline;

  /** All rounds must end by the deadline. */
  public BootstrapRounds(Bootstrap bootstrap, Deadline deadline) {
    this.bootstrap = bootstrap;
    this.deadline = deadline;
  }

  /** The work of a rank before a round, which makes its message. */
  @FunctionalInterface
  public interface Contribution {
    byte[] make() throws Exception;
  }

  /**
   * Runs this rank's part, then exchanges its result.
   *
   * @throws CollectiveException on all ranks when the part of any rank failed
   */
  public List<byte[]> exchange(String round, Contribution part) {
    byte[] message;
    CollectiveException own = null;
    try {
      message = prefixed((byte) 0, part.make());
    } catch (Exception | Error e) {
      // Errors such as a lack of memory or a missing class are sent too; otherwise the others would
      // wait.
      own = failureOf(e, round);
      message = prefixed((byte) 1, FailureCodec.encode(own, MAX_FAILURE_BYTES));
    }
    List<byte[]> all = bootstrap.exchange(round, message, deadline);
    if (own != null) {
      throw own;
    }
    return all.stream().map(BootstrapRounds::content).toList();
  }

  private CollectiveException failureOf(Throwable cause, String round) {
    if (cause instanceof CollectiveException collective) {
      return collective;
    }
    return new CollectiveException(
        Kind.IO,
        List.of(bootstrap.rank()),
        "rank "
            + bootstrap.rank()
            + " could not take part in creating communicator "
            + bootstrap.id()
            + " ("
            + round
            + "): "
            + cause,
        cause);
  }

  private static byte[] prefixed(byte prefix, byte[] content) {
    byte[] message = new byte[content.length + 1];
    message[0] = prefix;
    System.arraycopy(content, 0, message, 1, content.length);
    return message;
  }

  private static byte[] content(byte[] message) {
    if (message.length == 0) {
      throw new CollectiveException(
          Kind.MISMATCH, List.of(), "a rank sent an empty message in a round of the bootstrap");
    }
    byte[] content = Arrays.copyOfRange(message, 1, message.length);
    if (message[0] != 0) {
      throw FailureCodec.decode(content);
    }
    return content;
  }

  /** A round without content, after a part that may fail. */
  public void barrier(String round, Step part) {
    List<byte[]> all =
        exchange(
            round,
            () -> {
              part.run();
              return new byte[0];
            });
    if (all.size() != bootstrap.nranks()) {
      throw new IllegalStateException(
          "round " + round + " gave " + all.size() + " messages for " + bootstrap.nranks());
    }
  }

  /** A part without content. */
  @FunctionalInterface
  public interface Step {
    void run() throws Exception;
  }
}

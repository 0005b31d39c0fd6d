package io.weft.collectives.host;

/**
 * The amount of shared memory that each rank reserves for a communicator, besides windows.
 *
 * @param slotBytes the limit of a rank's deposit for a one-shot operation; two slots are reserved
 * @param stageBytes one chunk of a large operation on private buffers; three are reserved
 * @param ringBytes limit of the bytes in flight from one rank to another; a power of two, two rings
 *     are reserved per peer on the host
 */
public record BufferSizes(int slotBytes, int stageBytes, int ringBytes) {
  /** Measured on two cores with 2 MiB of second-level cache each. */
  public static final BufferSizes DEFAULT = new BufferSizes(32 << 10, 256 << 10, 64 << 10);

  private static final int LINE = 128;

  /** Bytes of the widest element. */
  private static final int WIDEST = 8;

  public BufferSizes {
    checkMultiple("slotBytes", slotBytes);
    checkMultiple("stageBytes", stageBytes);
    checkMultiple("ringBytes", ringBytes);
    if (Integer.bitCount(ringBytes) != 1) {
      throw new IllegalArgumentException("ringBytes " + ringBytes + " is not a power of two");
    }
  }

  /**
   * These sizes, with stages that hold at least one element of every rank. A reduce-scatter stages
   * the parts of all ranks side by side.
   */
  BufferSizes forRanks(int ranks) {
    int least = (ranks * WIDEST + LINE - 1) / LINE * LINE;
    return new BufferSizes(slotBytes, Math.max(stageBytes, least), ringBytes);
  }

  private static void checkMultiple(String name, int value) {
    if (value < LINE || value % LINE != 0 || value > 64 << 20) {
      throw new IllegalArgumentException(
          name + " " + value + " is not a multiple of " + LINE + " up to 64 MiB");
    }
  }
}

package io.weft.device;

/**
 * The place of memory and work.
 *
 * @param kind the runtime of the device
 * @param ordinal 0 for the host; the CUDA ordinal of a GPU
 */
public record Device(Kind kind, int ordinal) implements Comparable<Device> {
  /** The runtimes. */
  public enum Kind {
    HOST,
    CUDA
  }

  /** The host's own memory and processors. */
  public static final Device HOST = new Device(Kind.HOST, 0);

  public Device {
    if (ordinal < 0) {
      throw new IllegalArgumentException("device ordinal " + ordinal + " is negative");
    }
  }

  @Override
  public int compareTo(Device other) {
    int byKind = kind.compareTo(other.kind);
    return byKind != 0 ? byKind : Integer.compare(ordinal, other.ordinal);
  }

  @Override
  public String toString() {
    return kind == Kind.HOST ? "host" : "cuda:" + ordinal;
  }
}

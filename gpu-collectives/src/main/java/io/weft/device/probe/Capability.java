package io.weft.device.probe;

/** What may or may not be there. */
public enum Capability {
  /** A folder on a memory file system in which segments can be made and mapped. */
  SHARED_MEMORY("shared memory"),
  /** Transparent huge pages for shared memory: fewer page faults on first touch. */
  HUGE_PAGES("huge pages"),
  /** More than one processor: ranks of one host can run at the same time. */
  PROCESSORS("processors"),
  /** An interface that other hosts can reach. */
  NETWORK("network"),
  /** A network device that copies between memories of hosts by itself. */
  RDMA("rdma"),
  /** The NVIDIA driver and its library. */
  CUDA_DRIVER("cuda driver"),
  /** At least one GPU that the driver shows. */
  CUDA_DEVICES("cuda devices"),
  /** The library of NVIDIA's collectives, in a version that Weft can use. */
  NCCL("nccl"),
  /** The Java library through which the driver and NCCL are called; users bring it. */
  JNA("jna"),
  /** GPUs that read and write each other's memory. */
  PEER_ACCESS("peer access"),
  /** A switch that sends one write to many GPUs. */
  MULTICAST("multicast");

  private final String text;

  Capability(String text) {
    this.text = text;
  }

  /** The name that is printed. */
  @Override
  public String toString() {
    return text;
  }
}

package io.weft.device.probe;

/** A capability that a machine may have. */
public enum Capability {
  /** A folder on a memory file system in which segments can be created and mapped. */
  SHARED_MEMORY("shared memory"),
  /** Transparent huge pages for shared memory: fewer page faults on first touch. */
  HUGE_PAGES("huge pages"),
  /** More than one processor: ranks of one host can run at the same time. */
  PROCESSORS("processors"),
  /** An interface that other hosts can reach. */
  NETWORK("network"),
  /** A network device that copies between memories of hosts without their processors (RDMA). */
  RDMA("rdma"),
  /** The NVIDIA driver and its library. */
  CUDA_DRIVER("cuda driver"),
  /** At least one GPU that the driver shows. */
  CUDA_DEVICES("cuda devices"),
  /** NVIDIA's library of collectives, in a version that Weft can use. */
  NCCL("nccl"),
  /** The Java library that calls the driver and NCCL; users provide it. */
  JNA("jna"),
  /** GPUs that read and write each other's memory. */
  PEER_ACCESS("peer access");

  private final String text;

  Capability(String text) {
    this.text = text;
  }

  /** The printed name. */
  @Override
  public String toString() {
    return text;
  }
}

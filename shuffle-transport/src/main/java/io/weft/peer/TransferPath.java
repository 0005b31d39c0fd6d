package io.weft.peer;

/** How bytes get from one executor to another. */
public enum TransferPath {
  /** Between GPUs, by NCCL. */
  NCCL("nccl"),
  /** Between GPUs of one host, or on one GPU, through memory that both map by CUDA IPC. */
  IPC("ipc"),
  /** Through memory that both map, on one host. */
  SHM("shm"),
  /** By sockets. */
  TCP("tcp"),
  /** Not at all. */
  NONE("none");

  private final String text;

  TransferPath(String text) {
    this.text = text;
  }

  /** The name that is printed. */
  @Override
  public String toString() {
    return text;
  }
}

package io.weft.peer;

/** The path of bytes from one executor to another. */
public enum TransferPath {
  /** Between GPUs, by NCCL. */
  NCCL("nccl"),
  /** Between GPUs of one host, or on one GPU, through memory that both map by CUDA IPC. */
  IPC("ipc"),
  /** Through shared memory on one host. */
  SHM("shm"),
  /** By TCP sockets. */
  TCP("tcp"),
  /** No path. */
  NONE("none");

  private final String text;

  TransferPath(String text) {
    this.text = text;
  }

  /** The name for messages. */
  @Override
  public String toString() {
    return text;
  }
}

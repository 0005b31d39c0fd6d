package io.weft.collectives.nccl;

/**
 * The functions of libnccl that Weft calls, named as in the library. Pointers and sizes are longs.
 * Bound by {@link NcclLibrary#load}.
 */
final class NcclFunctions {
  private NcclFunctions() {}

  static native long ncclGetErrorString(int result);

  static native long ncclGetLastError(long comm);

  static native int ncclGetUniqueId(byte[] id);

  static native int ncclCommInitRankConfig(
      long out, int nranks, NcclUniqueId id, int rank, long config);

  static native int ncclCommGetAsyncError(long comm, int[] state);

  static native int ncclCommFinalize(long comm);

  static native int ncclCommDestroy(long comm);

  static native int ncclCommAbort(long comm);

  static native int ncclMemAlloc(long[] address, long bytes);

  static native int ncclMemFree(long address);

  static native int ncclGroupStart();

  static native int ncclGroupEnd();

  static native int ncclAllReduce(
      long send, long receive, long count, int type, int op, long comm, long stream);

  static native int ncclReduce(
      long send, long receive, long count, int type, int op, int root, long comm, long stream);

  static native int ncclBroadcast(
      long send, long receive, long count, int type, int root, long comm, long stream);

  static native int ncclAllGather(
      long send, long receive, long count, int type, long comm, long stream);

  static native int ncclReduceScatter(
      long send, long receive, long count, int type, int op, long comm, long stream);

  static native int ncclSend(long send, long count, int type, int peer, long comm, long stream);

  static native int ncclRecv(long receive, long count, int type, int peer, long comm, long stream);

  /** Functions that NCCL has since 2.27.3. {@link NcclLibrary#load} binds them if they exist. */
  static final class NcclWindowFunctions {
    private NcclWindowFunctions() {}

    static native int ncclCommWindowRegister(
        long comm, long address, long bytes, long out, int flags);

    static native int ncclCommWindowDeregister(long comm, long window);
  }

  /** The function that every NCCL has. It is bound first, to read the version of the library. */
  static final class NcclVersionFunction {
    private NcclVersionFunction() {}

    static native int ncclGetVersion(int[] version);
  }
}

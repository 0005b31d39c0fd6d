package io.weft.collectives.nccl;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.nccl.NcclFunctions.NcclVersionFunction;
import io.weft.collectives.nccl.NcclFunctions.NcclWindowFunctions;
import io.weft.device.HeaderCheck;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bindings agree with NVIDIA's own nccl.h, as a compiler reads it. */
class NcclHeaderTest {
  private static final String CONSTANTS =
      """
      NcclLibrary.OLDEST NCCL_VERSION(2, 19, 3)
      NcclLibrary.WINDOWS NCCL_VERSION(2, 27, 3)
      NcclLibrary.SHARES_GPUS NCCL_VERSION(2, 30, 3)
      NcclLibrary.SUCCESS ncclSuccess
      NcclLibrary.REMOTE_ERROR ncclRemoteError
      NcclLibrary.IN_PROGRESS ncclInProgress
      NcclUniqueId.BYTES sizeof(ncclUniqueId)
      NcclComm.CONFIG_BYTES 48
      NcclComm.CONFIG_MAGIC 0xcafebeef
      NcclComm.CONFIG_VERSION NCCL_VERSION(2, 18, 0)
      NcclComm.UNDEFINED NCCL_CONFIG_UNDEF_INT
      NcclComm.SYMMETRIC NCCL_WIN_COLL_SYMMETRIC
      NcclComm.POLL_NANOS
      NcclCalls.BYTES ncclInt8
      CommunicatorWindows$WindowAgreement.ALIGNMENT NCCL_WIN_REQUIRED_ALIGNMENT
      """;

  private static final Map<DataType, String> TYPES =
      Map.of(
          DataType.INT8, "ncclInt8",
          DataType.INT32, "ncclInt32",
          DataType.INT64, "ncclInt64",
          DataType.FLOAT32, "ncclFloat32",
          DataType.FLOAT64, "ncclFloat64");

  private static final Map<ReduceOp, String> OPERATIONS =
      Map.of(
          ReduceOp.SUM, "ncclSum",
          ReduceOp.PRODUCT, "ncclProd",
          ReduceOp.MAX, "ncclMax",
          ReduceOp.MIN, "ncclMin");

  @TempDir Path folder;

  @Test
  void bindingsAgreeWithNcclH() throws Exception {
    Optional<Path> cuda = HeaderCheck.cudaFolder();
    Optional<Path> nccl = HeaderCheck.ncclFolder();
    assumeTrue(cuda.isPresent(), "there is no cuda.h: set CUDA_HOME or -Dweft.cuda.include");
    assumeTrue(nccl.isPresent(), "there is no nccl.h: set NCCL_HOME or -Dweft.nccl.include");
    assumeTrue(HeaderCheck.whyNoCompiler().isEmpty(), HeaderCheck::whyNoCompiler);
    HeaderCheck check =
        new HeaderCheck("nccl.h")
            .functions(NcclVersionFunction.class, "1")
            .functions(NcclFunctions.class, "1")
            .functions(NcclWindowFunctions.class, "NCCL_VERSION_CODE >= 22703")
            .constants(NcclLibrary.class.getPackage(), CONSTANTS)
            .struct(
                "ncclConfig_t",
                config(),
                """
                it.size = 48;
                it.magic = 0xcafebeef;
                it.version = NCCL_VERSION(2, 18, 0);
                it.blocking = 0;
                it.cgaClusterSize = NCCL_CONFIG_UNDEF_INT;
                it.minCTAs = NCCL_CONFIG_UNDEF_INT;
                it.maxCTAs = 16;
                it.splitShare = NCCL_CONFIG_UNDEF_INT;
                """);
    TYPES.forEach((type, inC) -> check.constant("" + type, NcclCalls.type(type), inC));
    OPERATIONS.forEach((op, inC) -> check.constant("" + op, NcclCalls.op(op), inC));
    check.run(folder, List.of(nccl.get(), cuda.get()));
  }

  private static byte[] config() {
    return NcclComm.config(16).getByteArray(0, NcclComm.CONFIG_BYTES);
  }
}

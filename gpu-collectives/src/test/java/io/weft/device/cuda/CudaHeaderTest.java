package io.weft.device.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.device.HeaderCheck;
import io.weft.device.cuda.CudaModule.CudaLoadFunctions;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bindings agree with NVIDIA's own cuda.h, as a compiler reads it. */
class CudaHeaderTest {
  private static final String CONSTANTS =
      """
      CudaDevice.MEMORY_TYPE CU_POINTER_ATTRIBUTE_MEMORY_TYPE
      CudaDevice.ORDINAL CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
      CudaDevice.HOST_MEMORY CU_MEMORYTYPE_HOST
      CudaDevice.DEVICE_MEMORY CU_MEMORYTYPE_DEVICE
      CudaEvent$CudaMark.WITHOUT_TIMING CU_EVENT_DISABLE_TIMING
      CudaException.OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY
      CudaException.serialVersionUID
      CudaGraph.THREAD_LOCAL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
      CudaKernel.MAX_THREADS
      CudaKernel.BUFFER_POINTER CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT
      CudaKernel.BUFFER_SIZE CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT
      CudaLibrary.OLDEST_DRIVER
      CudaLibrary.SUCCESS CUDA_SUCCESS
      CudaLibrary.NOT_READY CUDA_ERROR_NOT_READY
      CudaLibrary.NO_DEVICE CUDA_ERROR_NO_DEVICE
      CudaLibrary.NAME_BYTES
      CudaLibrary.MULTICAST CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
      CudaModule.ERROR_LOG CU_JIT_ERROR_LOG_BUFFER
      CudaModule.ERROR_LOG_BYTES CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
      CudaModule.LOG_BYTES
      CudaModule.NOT_FOUND CUDA_ERROR_NOT_FOUND
      CudaStream.NON_BLOCKING CU_STREAM_NON_BLOCKING
      CudaStream.POLL_NANOS
      DriverMemory.PORTABLE CU_MEMHOSTALLOC_PORTABLE
      IpcMemory.WITH_PEER_ACCESS CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
      IpcMemoryHandle.BYTES sizeof(CUipcMemHandle)
      PeerAccess.ALREADY_ENABLED CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
      """;

  @TempDir Path folder;

  @Test
  void bindingsAgreeWithCudaH() throws Exception {
    Optional<Path> cuda = HeaderCheck.cudaFolder();
    assumeTrue(cuda.isPresent(), "there is no cuda.h: set CUDA_HOME or -Dweft.cuda.include");
    assumeTrue(HeaderCheck.whyNoCompiler().isEmpty(), HeaderCheck::whyNoCompiler);
    new HeaderCheck("cuda.h")
        .functions(CudaFunctions.class, "1")
        .functions(CudaGraphFunctions.class, "1")
        .functions(CudaPeerFunctions.class, "1")
        .functions(CudaLoadFunctions.class, "CUDA_VERSION >= 12040")
        .constants(CudaLibrary.class.getPackage(), CONSTANTS)
        .constant("the bytes of a uuid", 16, "sizeof(CUuuid)")
        .constant("the end of launch parameters", 0, "CU_LAUNCH_PARAM_END_AS_INT")
        .run(folder, List.of(cuda.get()));
  }
}

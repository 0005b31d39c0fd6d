package io.weft.device.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.device.DoubleLibraries;
import io.weft.device.HeaderCheck;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaModule.CudaLoadFunctions;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bindings agree with NVIDIA's own cuda.h, as a compiler reads it. */
@UsesDoubles
class CudaHeaderTest {
  /** The struct of a multicast object is of CUDA 12.1, with 2 devices and 4 MiB here. */
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
      CudaModule.ERROR_LOG CU_JIT_ERROR_LOG_BUFFER
      CudaModule.ERROR_LOG_BYTES CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
      CudaModule.LOG_BYTES
      CudaModule.NOT_FOUND CUDA_ERROR_NOT_FOUND
      CudaStream.NON_BLOCKING CU_STREAM_NON_BLOCKING
      CudaStream.POLL_NANOS
      DriverMemory.PORTABLE CU_MEMHOSTALLOC_PORTABLE
      IpcMemory.WITH_PEER_ACCESS CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
      IpcMemoryHandle.BYTES sizeof(CUipcMemHandle)
      MulticastObject.DESCRIPTORS CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
      MulticastObject.PAIR
      MulticastObject.PROPERTY_BYTES sizeof(CUmulticastObjectProp)
      MulticastObject.LEAST CU_MULTICAST_GRANULARITY_MINIMUM
      MulticastSupport.MULTICAST CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
      MulticastSupport.DESCRIPTORS CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
      MulticastSupport.COMPUTE_CAPABILITY CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
      MulticastSupport.OLDEST_GPU
      PeerAccess.ALREADY_ENABLED CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
      VirtualMemory.PINNED CU_MEM_ALLOCATION_TYPE_PINNED
      VirtualMemory.ON_DEVICE CU_MEM_LOCATION_TYPE_DEVICE
      VirtualMemory.PROPERTY_BYTES sizeof(CUmemAllocationProp)
      VirtualMemory.FABRIC CU_MEM_HANDLE_TYPE_FABRIC
      VirtualMemory.RDMA_OFFSET offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable)
      VirtualMemory.RDMA_SUPPORTED CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
      VirtualMemory.FABRIC_SUPPORTED CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED
      VirtualMemory.NOT_PERMITTED CUDA_ERROR_NOT_PERMITTED
      VirtualMemory.NOT_SUPPORTED CUDA_ERROR_NOT_SUPPORTED
      VirtualRange.ON_DEVICE CU_MEM_LOCATION_TYPE_DEVICE
      VirtualRange.READ_AND_WRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE
      VirtualRange.ACCESS_BYTES sizeof(CUmemAccessDesc)
      """;

  @TempDir Path folder;

  @Test
  void bindingsAgreeWithCudaH() throws Exception {
    Optional<Path> cuda = HeaderCheck.cudaFolder();
    assumeTrue(cuda.isPresent(), "there is no cuda.h: set CUDA_HOME or -Dweft.cuda.include");
    assumeTrue(HeaderCheck.whyNoCompiler().isEmpty(), HeaderCheck::whyNoCompiler);
    try (CudaDevice device = DoubleLibraries.cuda().open(3)) {
      new HeaderCheck("cuda.h")
          .functions(CudaFunctions.class, "1")
          .functions(CudaGraphFunctions.class, "1")
          .functions(CudaPeerFunctions.class, "1")
          .functions(CudaMulticastFunctions.class, "1")
          .functions(CudaLoadFunctions.class, "CUDA_VERSION >= 12040")
          .constants(CudaLibrary.class.getPackage(), CONSTANTS)
          .struct(
              "CUmemAllocationProp",
              VirtualMemory.of(device).properties(1),
              """
              it.type = CU_MEM_ALLOCATION_TYPE_PINNED;
              it.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              it.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
              it.location.id = 3;
              it.allocFlags.gpuDirectRDMACapable = 1;
              """)
          .struct(
              "CUmemAccessDesc",
              VirtualRange.access(device),
              """
              it.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
              it.location.id = 3;
              it.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
              """)
          .struct(
              "CUmulticastObjectProp",
              MulticastObject.properties(2, 4 << 20),
              """
              it.numDevices = 2;
              it.size = 4 << 20;
              it.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              """)
          .constant("the bytes of a uuid", 16, "sizeof(CUuuid)")
          .constant("the end of launch parameters", 0, "CU_LAUNCH_PARAM_END_AS_INT")
          .run(folder, List.of(cuda.get()));
    }
  }
}

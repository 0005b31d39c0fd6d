package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.DoubleLibraries;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.UsesDoubles;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

@UsesDoubles
class CudaLibraryTest {
  private static final int VERSION = 12080;
  private static final int DEVICES = 8;

  private final CudaLibrary library = DoubleLibraries.cuda();

  @AfterEach
  void resetDriver() {
    DoubleLibraries.cudaControls().cudaDoubleDriver(VERSION, DEVICES);
    DoubleLibraries.assertClean();
  }

  @Test
  void gpusAreFoundByTheirOwnIdentity() {
    assertThat(library.version()).isEqualTo("12.8");
    assertThat(library.gpus()).hasSize(DEVICES);
    assertThat(library.gpus()).extracting(CudaLibrary.GpuDescription::uuid).doesNotHaveDuplicates();
    UUID wanted = library.gpus().get(5).uuid();
    try (CudaDevice device = library.open(wanted)) {
      assertThat(device.description().ordinal()).isEqualTo(5);
      assertThat(device).hasToString("cuda:5 (Weft test double 5)");
    }
    UUID unknown = UUID.randomUUID();
    assertThatThrownBy(() -> library.open(unknown)).hasMessageContaining("no GPU is " + unknown);
  }

  @Test
  void deviceThatWasClosedIsNotUsed() {
    CudaDevice device = library.open(0);
    device.close();
    device.close();
    assertThatThrownBy(device::use).hasMessageContaining("was closed");
  }

  @Test
  void oldDriverIsRefusedWithWhatIsNeeded() {
    DoubleLibraries.cudaControls().cudaDoubleDriver(11040, DEVICES);
    assertThatThrownBy(() -> CudaLibrary.start(library.path()))
        .isInstanceOf(UnavailableLibraryException.class)
        .hasMessageContaining("supports CUDA 11.4, Weft needs 12.0 (driver 525) or newer");
  }

  @Test
  void driverWithoutGpusIsRefused() {
    DoubleLibraries.cudaControls().cudaDoubleDriver(VERSION, 0);
    assertThatThrownBy(() -> CudaLibrary.start(library.path()))
        .isInstanceOf(UnavailableLibraryException.class)
        .hasMessageContaining("shows no GPU to this process");
  }
}

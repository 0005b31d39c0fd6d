package io.weft.tensor.dlpack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.jna.Function;
import com.sun.jna.Pointer;
import io.weft.collectives.DataType;
import io.weft.device.Device;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The offsets are those of DLPack's header on a machine with addresses of 8 bytes. */
class DlpackTest {
  private static final TensorType TYPE = TensorType.of(DataType.FLOAT32, 2, 3, 5);

  private final AtomicInteger released = new AtomicInteger();

  @AfterEach
  void nothingIsExportedAnyMore() {
    assertThat(Dlpack.exported()).isZero();
  }

  private long export(DlpackForm form, DlpackTensor tensor) {
    return Dlpack.export(form, tensor, released::incrementAndGet);
  }

  /** Calls the deleter, like a consumer. */
  private static void callDeleter(long structure, long at) {
    Function.getFunction(new Pointer(Memory.getLong(structure + at)))
        .invokeVoid(new Object[] {new Pointer(structure)});
  }

  private static void assertTensor(long at, long address, int deviceType, int device) {
    assertThat(Memory.getLong(at)).isEqualTo(address);
    assertThat(Memory.getInt(at + 8)).isEqualTo(deviceType);
    assertThat(Memory.getInt(at + 12)).isEqualTo(device);
    assertThat(Memory.getInt(at + 16)).isEqualTo(3);
    assertThat(Memory.getInt(at + 20))
        .as("float, 32 bits, 1 lane")
        .isEqualTo(2 | 32 << 8 | 1 << 16);
    long shape = Memory.getLong(at + 24);
    long strides = Memory.getLong(at + 32);
    long[] expected = {2, 3, 5};
    long[] steps = {15, 5, 1};
    for (int i = 0; i < 3; i++) {
      assertThat(Memory.getLong(shape + 8L * i)).isEqualTo(expected[i]);
      assertThat(Memory.getLong(strides + 8L * i)).isEqualTo(steps[i]);
    }
    assertThat(Memory.getLong(at + 40)).as("byte offset").isZero();
  }

  @Test
  void plainStructureMatchesTheHeader() {
    long structure = export(DlpackForm.PLAIN, new DlpackTensor(TYPE, 4096, Device.HOST, false));
    assertTensor(structure, 4096, 1, 0);
    assertThat(released).hasValue(0);
    callDeleter(structure, 56);
    assertThat(released).hasValue(1);
  }

  @Test
  void versionedStructureIsMarkedAsReadOnly() {
    Device gpu = new Device(Device.Kind.CUDA, 3);
    long structure = export(DlpackForm.VERSIONED, new DlpackTensor(TYPE, 8192, gpu, true));
    assertThat(Memory.getInt(structure)).as("major").isEqualTo(1);
    assertThat(Memory.getInt(structure + 4)).as("minor").isZero();
    assertThat(Memory.getLong(structure + 24)).as("read-only").isEqualTo(1);
    assertTensor(structure + 32, 8192, 2, 3);
    callDeleter(structure, 16);
    assertThat(released).hasValue(1);
  }

  @Test
  void aReadOnlyTensorIsNotExportedAsPlain() {
    assertThatThrownBy(
            () -> export(DlpackForm.PLAIN, new DlpackTensor(TYPE, 4096, Device.HOST, true)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("read-only");
    assertThat(Dlpack.exported()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "INT8, 0, 8", "INT16, 0, 16", "INT32, 0, 32", "INT64, 0, 64",
    "FLOAT16, 2, 16", "BFLOAT16, 4, 16", "FLOAT32, 2, 32", "FLOAT64, 2, 64"
  })
  void elementTypesHaveTheirCodes(DataType dtype, int code, int bits) {
    TensorType one = TensorType.of(dtype);
    long structure = export(DlpackForm.PLAIN, new DlpackTensor(one, 64, Device.HOST, false));
    assertThat(Memory.getInt(structure + 16)).as("dimensions").isZero();
    assertThat(Memory.getInt(structure + 20)).isEqualTo(code | bits << 8 | 1 << 16);
    Dlpack.delete(structure);
  }

  @ParameterizedTest
  @EnumSource(DlpackForm.class)
  void deleterIsCalledByAThreadOfTheConsumer(DlpackForm form) throws Exception {
    try (Tensor tensor = Tensor.allocate(TYPE)) {
      long structure = export(form, new DlpackTensor(TYPE, tensor.address(), Device.HOST, false));
      CompletableFuture.runAsync(() -> callDeleter(structure, form == DlpackForm.PLAIN ? 56 : 16))
          .get(60, TimeUnit.SECONDS);
      assertThat(released).hasValue(1);
    }
  }

  @Test
  void aStructureThatWasNotTakenIsDeletedOnce() {
    long structure = export(DlpackForm.PLAIN, new DlpackTensor(TYPE, 64, Device.HOST, false));
    Dlpack.delete(structure);
    Dlpack.delete(structure);
    assertThat(released).hasValue(1);
  }

  /** Native code that calls the deleter cannot catch an exception. */
  @Test
  void aFailedReleaseDoesNotReachTheConsumer() {
    DlpackTensor tensor = new DlpackTensor(TYPE, 64, Device.HOST, false);
    long structure =
        Dlpack.export(
            DlpackForm.PLAIN,
            tensor,
            () -> {
              throw new IllegalStateException("thrown by the test");
            });
    callDeleter(structure, 56);
    assertThat(Dlpack.exported()).isZero();
  }

  @Test
  void noElementsNeedNoAddressAndOthersDo() {
    TensorType none = TensorType.of(DataType.INT32, 0, 7);
    long structure = export(DlpackForm.PLAIN, new DlpackTensor(none, 0, Device.HOST, false));
    assertThat(Memory.getLong(structure)).isZero();
    Dlpack.delete(structure);
    assertThatThrownBy(() -> new DlpackTensor(TYPE, 0, Device.HOST, false))
        .hasMessage("a tensor float32[2, 3, 5] has no address");
  }
}

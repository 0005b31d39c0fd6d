package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.tensor.TensorType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The tensor types in a column's metadata. */
class WeftTensorsTest {
  private static StructField field(Metadata metadata) {
    return new StructField("x", DataTypes.createArrayType(DataTypes.FloatType), true, metadata);
  }

  @ParameterizedTest
  @EnumSource(DataType.class)
  void aTypeComesBackFromTheMetadata(DataType dtype) {
    Metadata metadata = WeftTensors.metadata(dtype, 3, 224, 224);
    Metadata again = Metadata.fromJson(metadata.json());
    assertThat(WeftTensors.typeOf(field(again))).contains(TensorType.of(dtype, 3, 224, 224));
    assertThat(WeftTensors.dtypeOf(field(again))).contains(dtype);
  }

  @Test
  void aFirstDimensionMayVary() {
    StructField field = field(WeftTensors.metadata(DataType.INT8, -1, 4));
    assertThat(WeftTensors.typeOf(field)).isEmpty();
    assertThat(WeftTensors.shapeOf(field).orElseThrow()).containsExactly(-1, 4);
  }

  @Test
  void otherColumnsHaveNone() {
    assertThat(WeftTensors.typeOf(field(Metadata.empty()))).isEmpty();
    assertThat(WeftTensors.shapeOf(field(Metadata.empty()))).isEmpty();
  }

  @Test
  void badShapesAreRefused() {
    for (long[] shape : new long[][] {{}, {0}, {3, -1}, {-2}, new long[32]}) {
      assertThatThrownBy(() -> WeftTensors.metadata(DataType.INT8, shape))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("a tensor column has 1 to 31 dimensions");
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{\"weft.tensor\":\"float32\"}",
        "{\"weft.tensor\":{}}",
        "{\"weft.tensor\":{\"dtype\":\"float12\",\"shape\":[0]}}",
        "{\"weft.tensor\":{\"dtype\":3,\"shape\":\"x\"}}"
      })
  void damagedMetadataIsNamed(String json) {
    StructField field = field(new MetadataBuilder().withMetadata(Metadata.fromJson(json)).build());
    assertThatThrownBy(() -> WeftTensors.shapeOf(field))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("column x: its metadata under weft.tensor is not a tensor's");
    assertThatThrownBy(() -> WeftTensors.dtypeOf(field))
        .isInstanceOf(IllegalArgumentException.class);
  }
}

package io.weft.training;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.training.GradientBuckets.BucketLayout;
import io.weft.training.GradientBuckets.BucketLayout.Bucket;
import io.weft.training.GradientBuckets.BucketLayout.Place;
import java.util.List;
import org.junit.jupiter.api.Test;

class BucketLayoutTest {
  private static ParameterSpec floats(String name, long count) {
    return new ParameterSpec(name, DataType.FLOAT32, count);
  }

  private static List<List<Integer>> members(List<ParameterSpec> parameters, long bytes) {
    return BucketLayout.of(parameters, bytes).buckets().stream()
        .map(bucket -> bucket.places().stream().map(Place::parameter).toList())
        .toList();
  }

  @Test
  void theLastRegisteredComeFirst() {
    List<ParameterSpec> parameters = List.of(floats("a", 16), floats("b", 16), floats("c", 16));
    assertThat(members(parameters, 128)).containsExactly(List.of(2, 1), List.of(0));
    assertThat(members(parameters, 1 << 20)).containsExactly(List.of(2, 1, 0));
  }

  @Test
  void oneLargerThanABucketHasItsOwn() {
    List<ParameterSpec> parameters = List.of(floats("a", 4), floats("big", 1000), floats("c", 4));
    assertThat(members(parameters, 256)).containsExactly(List.of(2), List.of(1), List.of(0));
  }

  @Test
  void aBucketHasOneType() {
    List<ParameterSpec> parameters =
        List.of(floats("a", 4), new ParameterSpec("half", DataType.BFLOAT16, 4), floats("c", 4));
    List<Bucket> buckets = BucketLayout.of(parameters, 1 << 20).buckets();
    assertThat(buckets)
        .extracting(Bucket::type)
        .containsExactly(DataType.FLOAT32, DataType.BFLOAT16, DataType.FLOAT32);
  }

  @Test
  void gradientsBeginAtCacheLinesAndDoNotOverlap() {
    List<ParameterSpec> parameters =
        List.of(floats("a", 3), floats("b", 17), floats("c", 16), floats("d", 1));
    Bucket bucket = BucketLayout.of(parameters, 1 << 20).buckets().get(0);
    long end = 0;
    for (Place place : bucket.places()) {
      assertThat(place.first() * 4 % BucketLayout.ALIGNMENT).isZero();
      assertThat(place.first()).isGreaterThanOrEqualTo(end);
      end = place.first() + place.count();
    }
    assertThat(bucket.count()).isGreaterThanOrEqualTo(end);
  }
}

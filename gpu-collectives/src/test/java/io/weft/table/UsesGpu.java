package io.weft.table;

import io.weft.device.library.DoubleLibraries;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A test on a {@link TableGpu}, skipped with the reason where there is none. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(UsesGpu.Condition.class)
@interface UsesGpu {
  /** Whether there is one. */
  final class Condition implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      String whyNot = TableGpu.isMachines() ? "" : DoubleLibraries.whyNot();
      return whyNot.isEmpty()
          ? ConditionEvaluationResult.enabled("there is a GPU, or its double")
          : ConditionEvaluationResult.disabled(whyNot);
    }
  }
}

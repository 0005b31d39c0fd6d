package io.weft.device;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Marks a test that needs the {@link DoubleLibraries}; it is skipped, with the reason, if gcc is
 * missing.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(UsesDoubles.Condition.class)
public @interface UsesDoubles {
  /** Checks whether the doubles can be built. */
  final class Condition implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      String whyNot = DoubleLibraries.whyNot();
      return whyNot.isEmpty()
          ? ConditionEvaluationResult.enabled("the doubles are built")
          : ConditionEvaluationResult.disabled(whyNot);
    }
  }
}

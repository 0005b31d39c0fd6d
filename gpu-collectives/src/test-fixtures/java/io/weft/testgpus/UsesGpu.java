package io.weft.testgpus;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * Marks a test that uses GPUs of the {@link TestMachine}; it is skipped, with the reason, without
 * them.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(UsesGpu.Condition.class)
public @interface UsesGpu {
  /** The required number of GPUs. */
  int value() default 1;

  /** Checks the number of GPUs. */
  final class Condition implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      int gpus =
          AnnotationSupport.findAnnotation(context.getElement(), UsesGpu.class)
              .map(UsesGpu::value)
              .orElse(1);
      String whyNot = TestMachine.whyNot(gpus);
      return whyNot.isEmpty()
          ? ConditionEvaluationResult.enabled("there are GPUs, or their doubles")
          : ConditionEvaluationResult.disabled(whyNot);
    }
  }
}

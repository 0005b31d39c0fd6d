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

/** A test on GPUs of the {@link TestMachine}, skipped with the reason where they are not there. */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(UsesGpu.Condition.class)
public @interface UsesGpu {
  /** How many it needs. */
  int value() default 1;

  /** Whether there are so many. */
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

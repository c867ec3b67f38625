import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.tools.ProducerPerformance;

/**
 * Kafka's own perf tool, several times at once in one JVM: the first argument says how often, the rest is the
 * tool's. On few cores this is kinder to Kafka than a JVM each, which would compile the same code eight times over.
 */
class ProducerThreads {
    public static void main(String[] arguments) throws Exception {
        String[] forTheTool = Arrays.copyOfRange(arguments, 1, arguments.length);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
            Thread thread = new Thread(() -> run(forTheTool));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void run(String[] arguments) {
        try {
            ProducerPerformance.main(arguments);
        } catch (Exception failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }
}

// Run with `java AdapterTest.java`; numaproof must be installed (requirements-conformance.txt).
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;

public class AdapterTest {
    static final String ADAPTER = "{{ skeleton.command }}";

    public static void main(String[] arguments) throws IOException, InterruptedException {
        theAdapterChoosesTheRequestedNumberOfFreeCpus();
        theAdapterSpeaksTheProtocol();
    }

    static void theAdapterChoosesTheRequestedNumberOfFreeCpus() throws IOException {
        var answers = ask("""
            {"id": 1, "op": "start", "args": {"state_dir": "%s", "config": {"cpuManagerPolicy": "static", \
            "reservedSystemCPUs": "0"}, "machine": {"topology": [{"node_id": 0, "cores": [\
            {"core_id": 0, "socket_id": 0, "thread_ids": [0, 2]}, \
            {"core_id": 1, "socket_id": 0, "thread_ids": [1, 3]}]}]}}}
            {"id": 2, "op": "admit", "args": {"pod": {"metadata": {"uid": "a"}, "spec": {"containers": [\
            {"name": "app", "resources": {"limits": {"cpu": 3, "memory": "1Gi"}}}]}}}}
            """.formatted(Files.createTempDirectory("adapter")));
        require(answers.get(1).contains("\"exclusive\":\"1,2,3\""), answers.get(1));
    }

    static void theAdapterSpeaksTheProtocol() throws IOException, InterruptedException {
        var doctor = new ProcessBuilder("numaproof", "doctor", ADAPTER).inheritIO().start();
        require(doctor.waitFor() == 0, "the doctor found problems");
    }

    static List<String> ask(String requests) throws IOException {
        var adapter = new ProcessBuilder(ADAPTER.split(" ")).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (var input = adapter.outputWriter()) {
            input.write(requests);
        }
        try (var output = adapter.inputReader()) {
            return output.lines().toList();
        }
    }

    static void require(boolean holds, String message) {
        if (!holds) throw new AssertionError(message);
    }
}

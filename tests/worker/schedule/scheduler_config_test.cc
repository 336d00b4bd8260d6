#include <gtest/gtest.h>

#include "worker/schedule/schedulers.h"

namespace merope::worker {
namespace {

TEST(SchedulerConfig, ReadsTheFileOfWan22) {
  const Result<SchedulerSettings> settings = parse_scheduler_config(R"({
    "_class_name": "UniPCMultistepScheduler", "_diffusers_version": "0.35.0.dev0", "beta_end": 0.02,
    "beta_schedule": "linear", "beta_start": 0.0001, "disable_corrector": [1], "dynamic_thresholding_ratio": 0.995,
    "final_sigmas_type": "zero", "flow_shift": 5.0, "lower_order_final": true, "num_train_timesteps": 1000,
    "predict_x0": true, "prediction_type": "flow_prediction", "rescale_betas_zero_snr": false, "sample_max_value": 1.0,
    "solver_order": 2, "solver_p": null, "solver_type": "bh2", "steps_offset": 0, "thresholding": false,
    "time_shift_type": "exponential", "timestep_spacing": "linspace", "trained_betas": null, "use_beta_sigmas": false,
    "use_dynamic_shifting": false, "use_exponential_sigmas": false, "use_flow_sigmas": true, "use_karras_sigmas": false})");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->solver, Solver::kUniPc);
  EXPECT_EQ(settings->grid, SigmaGrid::kUniPc);
  EXPECT_EQ(settings->shift, 5.0);
  EXPECT_EQ(settings->solver_order, 2);
  EXPECT_EQ(settings->disable_corrector, std::vector<int>{1});
}

TEST(SchedulerConfig, ReadsFlowMatchEuler) {
  const Result<SchedulerSettings> settings =
      parse_scheduler_config(R"({"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 7})");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->solver, Solver::kEuler);
  EXPECT_EQ(settings->grid, SigmaGrid::kEuler);
  EXPECT_EQ(settings->shift, 7.0);
}

TEST(SchedulerConfig, ReadsDpmSolver) {
  const Result<SchedulerSettings> settings = parse_scheduler_config(R"({
    "_class_name": "DPMSolverMultistepScheduler", "algorithm_type": "dpmsolver++", "euler_at_final": false,
    "final_sigmas_type": "zero", "flow_shift": 3.0, "lambda_min_clipped": -Infinity, "lower_order_final": true,
    "prediction_type": "flow_prediction", "solver_order": 2, "solver_type": "midpoint", "use_flow_sigmas": true,
    "use_lu_lambdas": false, "variance_type": null, "_name": "\"Infinity\" and NaN"})");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->solver, Solver::kDpm2M);
  EXPECT_EQ(settings->grid, SigmaGrid::kUniPcLegacy);
  EXPECT_EQ(settings->shift, 3.0);
}

TEST(SchedulerConfig, MayNameAnotherGrid) {
  const std::string flow = R"("use_flow_sigmas": true, "prediction_type": "flow_prediction")";
  const Result<SchedulerSettings> settings =
      parse_scheduler_config(R"({"_class_name": "UniPCMultistepScheduler", "sigma_grid": "wan_unipc", )" + flow + "}");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->grid, SigmaGrid::kWanUniPc);
}

TEST(SchedulerConfig, NamesEverythingThatIsNotSupported) {
  const std::string flow =
      R"("_class_name": "UniPCMultistepScheduler", "use_flow_sigmas": true, "prediction_type": "flow_prediction")";
  const std::vector<std::pair<std::string, std::vector<std::string>>> refusals = {
      {"[1]", {"no JSON object"}},
      {"{", {"no JSON object"}},
      {R"({"_class_name": "DDIMScheduler"})", {"DDIMScheduler"}},
      {R"({"_class_name": "UniPCMultistepScheduler"})", {"use_flow_sigmas is false", "prediction_type is \"epsilon\""}},
      {"{" + flow + R"(, "solver_type": "bh1", "use_karras_sigmas": true})",
       {"solver_type is \"bh1\"", "use_karras_sigmas is true"}},
      {"{" + flow + R"(, "solver_order": 3})", {"solver_order is 3"}},
      {"{" + flow + R"(, "flow_shift": "5"})", {"flow_shift is \"5\""}},
      {"{" + flow + R"(, "flow_shift": -1})", {"shift is -1"}},
      {"{" + flow + R"(, "disable_corrector": ["first"]})", {"disable_corrector holds \"first\""}},
      {"{" + flow + R"(, "disable_corrector": 3})", {"disable_corrector"}},
      {"{" + flow + R"(, "lower_order_final": false})", {"lower_order_final is false"}},
      {R"({"_class_name": "FlowMatchEulerDiscreteScheduler", "shift_terminal": 0.1})", {"shift_terminal is 0.1"}},
      {"{" + flow + R"(, "sigma_grid": "karras"})", {"sigma_grid is 'karras'"}},
      {"{" + flow + R"(, "sigma_grid": "wan_dpm"})", {"wan_dpm starts at sigma = 1"}},
      {R"({"_class_name": "DPMSolverMultistepScheduler", "use_flow_sigmas": true, "prediction_type": "flow_prediction",
           "algorithm_type": "sde-dpmsolver++", "solver_type": "heun", "use_lu_lambdas": true})",
       {"algorithm_type is \"sde-dpmsolver++\"", "solver_type is \"heun\"", "use_lu_lambdas is true"}},
  };
  for (const auto& [json, texts] : refusals) {
    const Result<SchedulerSettings> settings = parse_scheduler_config(json);
    ASSERT_FALSE(settings) << json;
    EXPECT_EQ(settings.error().code, ErrorCode::kInvalidArgument);
    for (const std::string& text : texts) {
      EXPECT_NE(settings.error().message.find(text), std::string::npos) << settings.error().message;
    }
  }
}

}  // namespace
}  // namespace merope::worker
